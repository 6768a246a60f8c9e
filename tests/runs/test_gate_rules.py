"""What the gates of a policy say of facts that are handed in. Nothing here asks a database."""

import math
from typing import Any

import pytest
from django.template.loader import render_to_string

from runs.eligibility import Link, linked
from runs.policy.checks import CHECKS, look
from runs.policy.document import BadPolicy, read_policy
from runs.policy.facts import Facts, facts_from
from runs.policy.sequential import answer, log_likelihood_ratio
from tests.examples.autogo.test_sequential import PUBLISHED_PAIRS
from workspaces.checklist import fact_checks
from workspaces.licences import is_allowed
from workspaces.models import Workspace

HOUR = 3_600_000
COMPARED = {
    "benchmark": "held", "contract": 2, "set": "holdout@1", "against": "model.pt of run 1", "pairs": 100, "gain": 0.02,
    "lower": -0.004, "only": [0, 0],
    "evaluations": [{"id": "eval_1", "label": "run 1"}],
}  # fmt: skip
FROZEN = COMPARED | {
    "lower": 0.01, "frozen_at": "2026-05-01T00:00:00+00:00", "trained_at": "2026-05-02T00:00:00+00:00",
    "calibration": {"10": 0.04, "15": 0.06}, "unsure": 0,
}  # fmt: skip
CHAIN: dict[str, Any] = {
    "is_whole": True, "gpu_ms": 3 * HOUR, "runs": 2, "open_runs": 0, "egress": "internal",
    "datasets": [{"slug": "table", "label": "table@1", "licence": "CC-BY-4.0", "state": "clean", "reason": ""}],
    "undeclared": {"count": 0, "named": [], "open": 0, "examples": []},
}  # fmt: skip
REVIEWED: dict[str, Any] = {
    "sha256": "a" * 64, "refused": [], "approved": [{"person": "Ada", "at": "2026-11-01T10:00:00+00:00", "approval": "approval_1"}],
}  # fmt: skip


def facts(**gates: Any) -> Facts:
    return Facts(
        at="2026-11-29T12:00:00+00:00", cause={"on": "evaluation_scored", "type": "evaluation", "id": "0", "label": "a score"}, gates=gates
    )


def bad(**values: Any) -> dict[str, Any]:
    return CHAIN | {"datasets": [CHAIN["datasets"][0] | values]}


def games(*batches: list[int]) -> dict[str, Any]:
    return {"against": "champion.npz", "batches": [{"run": "run_1", "label": "run 1", "pairs": pairs} for pairs in batches]}


def judged(check: dict[str, Any], **gates: Any) -> tuple[str, str]:
    kept = facts_from(facts(**gates).as_json())
    found = look(check, kept)
    return found.verdict.value, f"{found.observed}. {found.words}"


HOLDOUT = {"check": "no_holdout_regression", "benchmark": "held", "epsilon": 0.005}
GAIN = {"check": "calibrated_disagreement_gain", "benchmark": "held", "ece_at_most": 0.05}


def over(found: dict[str, Any]) -> dict[str, Any]:
    return {"no_holdout_regression": {"held": found}, "calibrated_disagreement_gain": {"held": found}}


@pytest.mark.parametrize("name", sorted(CHECKS.keys() - {"nothing_under_way", "results_at_least"}))  # counts of rows are always known
def test_every_check_but_those_of_the_history_is_unknown_where_nothing_was_found_out(name: str) -> None:
    given = {"gpu_hours": 1, "count": 1, "at_most": 1, "ece_at_most": 0.1, "benchmark": "held", "elo1": 10, "allowed": ["MIT"], "days": 30}
    given |= {"as": ["failed"], "expression": "best > 0.5"}
    given |= {"at_most": "public"} if name == "egress" else {}
    assert judged({"check": name, **given})[0] == "unknown"


@pytest.mark.parametrize(
    ("check", "gates", "verdict", "words"),
    [
        (HOLDOUT, over(COMPARED), "pass", "95 % of the paired bootstrap lie above −0.004"),
        (HOLDOUT | {"epsilon": 0.003}, over(COMPARED), "fail", "−0.004"),
        (HOLDOUT, over(COMPARED | {"only": [1, 0]}), "unknown", "not measured on the same samples"),
        (HOLDOUT, over(COMPARED | {"refusal": "It has no score under contract 2."}), "unknown", "no score under contract 2"),
        (HOLDOUT, over({"is_first": True}), "pass", "nothing stands"),
        (HOLDOUT | {"benchmark": "another"}, over(COMPARED), "unknown", "not among the facts"),
        (GAIN | {"bins": 10}, over(FROZEN), "pass", "calibration error over 10 bins is 0.040"),
        (GAIN, over(FROZEN), "fail", "0.060"),
        (GAIN, over(FROZEN | {"lower": 0.0}), "fail", "lie above 0"),
        (GAIN, over(FROZEN | {"calibration": None, "unsure": 3}), "unknown", "3 answers say no confidence"),
        (GAIN, over(FROZEN | {"frozen_at": "2026-05-02T00:00:00+00:00"}), "fail", "frozen too late"),
        (GAIN, over(FROZEN | {"frozen_at": ""}), "unknown", "nobody knows since when"),
        (GAIN, over({"is_first": True}), "unknown", "nothing stands"),
        ({"check": "contamination"}, {"chain": CHAIN}, "pass", "1 version clean"),
        ({"check": "contamination"}, {"chain": bad(state="unchecked", reason="Not yet.")}, "unknown", "table@1 is unchecked"),
        ({"check": "contamination"}, {"chain": bad(state="unknown")}, "unknown", "table@1 is unknown"),
        ({"check": "contamination"}, {"chain": bad(state="contaminated", reason="3 records.")}, "fail", "3 records"),
        ({"check": "contamination"}, {"chain": CHAIN | {"is_whole": False}}, "unknown", "too much"),
        ({"check": "cost_ceiling", "gpu_hours": 3}, {"chain": CHAIN}, "pass", "2 runs behind it used 3 GPU-hours"),
        ({"check": "cost_ceiling", "gpu_hours": 2.99}, {"chain": CHAIN}, "fail", "3 GPU-hours"),
        ({"check": "cost_ceiling", "gpu_hours": 3}, {"chain": CHAIN | {"open_runs": 1}}, "unknown", "may cost more"),
        ({"check": "licence", "allowed": ["CC-BY-4.0"]}, {"chain": CHAIN}, "pass", "CC-BY-4.0"),
        ({"check": "licence", "allowed": ["MIT"]}, {"chain": CHAIN}, "fail", "table@1 (CC-BY-4.0)"),
        ({"check": "licence", "allowed": ["MIT"]}, {"chain": bad(licence="NOASSERTION")}, "unknown", "not known"),
        ({"check": "undeclared_input"}, {"chain": CHAIN}, "pass", "none of 2 runs"),
        (
            {"check": "undeclared_input"},
            {"chain": CHAIN | {"undeclared": {"count": 1, "named": ["other@2"], "open": 0, "examples": []}}},
            "fail",
            "other@2",
        ),
        (
            {"check": "undeclared_input"},
            {"chain": CHAIN | {"undeclared": {"count": 0, "named": [], "open": 1, "examples": []}}},
            "unknown",
            "could read anything",
        ),
        ({"check": "egress", "at_most": "internal"}, {"chain": CHAIN}, "pass", "internal"),
        ({"check": "egress", "at_most": "public"}, {"chain": CHAIN}, "fail", "internal"),
        ({"check": "reviewer_approval"}, {"reviewer_approval": REVIEWED}, "pass", "Ada approved exactly this, SHA-256 aaaaaaaaaaaa"),
        ({"check": "reviewer_approval", "people": 2}, {"reviewer_approval": REVIEWED}, "unknown", "1 of 2"),
        ({"check": "reviewer_approval"}, {"reviewer_approval": REVIEWED | {"refused": REVIEWED["approved"]}}, "fail", "Ada refused"),
        ({"check": "elo_sequential", "elo1": 100}, {"elo_sequential": games([0, 0, 10, 20, 20])}, "pass", "at least +100 Elo"),
        ({"check": "elo_sequential", "elo1": 100}, {"elo_sequential": games([20, 20, 10, 0, 0])}, "fail", "no more than +0 Elo"),
        ({"check": "elo_sequential", "elo1": 100}, {"elo_sequential": games([1, 1, 2, 1, 1])}, "unknown", "neither is accepted"),
        ({"check": "elo_sequential", "elo1": 100}, {"elo_sequential": games()}, "unknown", "No run that is scored under the contract"),
        ({"check": "elo_sequential", "elo1": 100}, {"elo_sequential": {"is_first": True}}, "pass", "nothing stands"),
    ],
)
def test_gates_pass_fail_or_cannot_be_told(check: dict[str, Any], gates: dict[str, Any], verdict: str, words: str) -> None:
    said, sentence = judged(check, **gates)
    assert said == verdict, sentence
    assert words in sentence


@pytest.mark.parametrize(("name", "pairs", "elo0", "elo1", "printed"), PUBLISHED_PAIRS)
def test_log_likelihoods_as_published(name: str, pairs: tuple[int, ...], elo0: float, elo1: float, printed: str) -> None:
    assert f"{log_likelihood_ratio(pairs, elo0, elo1):.2f}" == printed, name


def test_the_bounds_are_walds() -> None:
    """Wald, Sequential Analysis (1947): log(beta / (1 - alpha)) and log((1 - beta) / alpha); testing frameworks of chess print (-2.94, 2.94)."""
    nothing = answer([], 0, 5, 0.05, 0.05)
    assert (round(nothing.low, 2), round(nothing.high, 2), nothing.accepted) == (-2.94, 2.94, "")
    uneven = answer([], 0, 5, 0.01, 0.1)
    assert uneven.low == pytest.approx(math.log(0.1 / 0.99))
    assert uneven.high == pytest.approx(math.log(0.9 / 0.01))


def test_the_first_bound_that_is_passed_decides_whatever_comes_later() -> None:
    won, lost = [0, 0, 10, 20, 20], [200, 200, 10, 0, 0]
    assert answer([won, lost], 0, 100, 0.05, 0.05).accepted == "H1"
    assert answer([lost, won], 0, 100, 0.05, 0.05).accepted == "H0"
    assert answer([won, lost], 0, 100, 0.05, 0.05).pairs == 50


@pytest.mark.parametrize(
    ("expression", "allowed", "is_it"),
    [
        ("MIT", ["MIT"], True),
        ("MIT OR GPL-3.0-only", ["MIT"], True),
        ("MIT AND GPL-3.0-only", ["MIT"], False),
        ("MIT AND (GPL-3.0-only OR Apache-2.0)", ["mit", "Apache-2.0"], True),
        ("(MIT OR Apache-2.0) AND GPL-3.0-only", ["MIT", "Apache-2.0"], False),
        ("GPL-2.0-only WITH Classpath-exception-2.0", ["GPL-2.0-only"], True),
        ("GPL-2.0-only WITH Classpath-exception-2.0 OR MIT", ["MIT"], True),
        ("LicenseRef-our-contract", ["LicenseRef-our-contract"], True),
        ("NOASSERTION", ["NOASSERTION"], False),
        ("whatever", ["whatever"], False),
    ],
)
def test_expressions_of_licences(expression: str, allowed: list[str], is_it: bool) -> None:
    assert is_allowed(expression, allowed) is is_it


@pytest.mark.parametrize(
    ("check", "words"),
    [
        ({"check": "elo_sequential", "elo0": 10, "elo1": 5}, "elo1 must be the larger"),
        ({"check": "elo_sequential", "elo1": 5, "alpha": 0.9}, "above 0.4"),
        ({"check": "licence", "allowed": ["my own words"]}, "no SPDX identifier"),
        ({"check": "licence", "allowed": []}, "licence, allowed"),
        ({"check": "calibrated_disagreement_gain", "benchmark": "held"}, "ece_at_most is missing"),
        ({"check": "calibrated_disagreement_gain", "benchmark": "held", "ece_at_most": 0.1, "bins": 7}, "is none of"),
        ({"check": "no_holdout_regression", "epsilon": -1}, "below 0"),
        ({"check": "egress", "at_most": "secret"}, "is none of"),
    ],
)
def test_a_gate_that_cannot_be_is_told_where_and_why(check: dict[str, Any], words: str) -> None:
    document = {"trigger": {"on": "evaluation_scored"}, "gate": [check], "action": {"do": "promote", "name": "champion"}}
    with pytest.raises(BadPolicy) as told:
        read_policy(document)
    assert words in str(told.value)


def chain_of(datasets: int) -> dict[str, Any]:
    named = [
        {"slug": f"d{number}", "label": f"d{number}@2", "licence": "MIT", "state": "clean", "reason": ""} for number in range(datasets)
    ]
    return CHAIN | {"datasets": named}


@pytest.mark.parametrize("check", [{"check": "contamination"}, {"check": "licence", "allowed": ["MIT"]}])
def test_each_version_that_was_judged_can_be_opened_and_those_after_the_fifth_unfold(check: dict[str, Any]) -> None:
    fact = look(check, facts(chain=chain_of(7)))
    [line] = fact_checks([fact.agreed])
    shown = render_to_string("parts/checklist.html", {"checks": [line], "workspace": Workspace(slug="lab")})
    at_once, _, unfolded = shown.partition("<summary>and 2 more</summary>")
    addresses = [f'href="/workspaces/lab/datasets/d{number}/?version=2"' for number in range(7)]
    assert [address in at_once for address in addresses] == [True] * 5 + [False] * 2
    assert [address in unfolded for address in addresses] == [False] * 5 + [True] * 2
    few = look(check, facts(chain=chain_of(5)))
    assert (few.more, "more" in few.agreed) == (0, False)
    assert "more" not in render_to_string("parts/checklist.html", {"checks": fact_checks([few.agreed]), "workspace": Workspace(slug="lab")})


def test_links_stop_at_a_hundred_and_facts_that_keep_five_say_how_many_others_there_are() -> None:
    links = [Link("dataset", f"d{number}", f"d{number}@1") for number in range(102)]
    assert (len(linked(links)["evidence"]), linked(links)["more"]) == (100, 2)
    kept = {"name": "Licence", "verdict": "pass", "evidence": [{"page": "dataset", "argument": "d", "label": "d@1"}], "more": 4}
    assert "and 4 more" in render_to_string("parts/checklist.html", {"checks": fact_checks([kept]), "workspace": Workspace(slug="lab")})
