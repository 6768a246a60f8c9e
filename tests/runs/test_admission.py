"""Admission is pure: the same facts give the same verdict, every line shows its arithmetic, and every no its way out."""

import json
from dataclasses import replace
from typing import Any

import pytest

from runs.admission import Answer, decide
from runs.admission_facts import AgentFacts, Facts, HoldoutFacts, LimitFacts, PoolFacts, WorkspaceFacts, facts_from

HOUR = 3_600_000
GOOD = Facts(
    workspace=WorkspaceFacts(name="AutoGo", status="active"),
    agent=AgentFacts(name="Worker", version=3, kind="train", slots=2),
    pool=PoolFacts(slug="local", slots=4, isolation="none", isolation_words="no isolation", is_accepting=True),
    holdout=HoldoutFacts(),
)
WEEK = LimitFacts(
    name="GPU-hours a week", unit="gpu_ms", window="week", amount=1200 * HOUR, mode="stop", used=1000 * HOUR, reserved=187 * HOUR,
    asked=24 * HOUR, until="Monday 00:00 Europe/Berlin",
)  # fmt: skip
AT_ONCE = LimitFacts(name="Runs at once", unit="runs", window="now", amount=4, mode="stop", used=4, reserved=0, asked=1)


def limited(*limits: LimitFacts, **changed: Any) -> Facts:
    return replace(GOOD, limits=limits, **changed)


def test_a_refusal_names_the_limit_the_arithmetic_and_the_way_out() -> None:
    verdict = decide(limited(WEEK))
    assert verdict.answer == Answer.REFUSE
    assert verdict.reasons == [
        "24 GPU-hours more would make 1,211 of 1,200 this week. "
        "Free up 11 GPU-hours, wait until Monday 00:00 Europe/Berlin, or ask for an increase."
    ]


@pytest.mark.parametrize(
    ("mode", "answer", "line"),
    [("stop", Answer.REFUSE, Answer.REFUSE), ("approval", Answer.APPROVAL, Answer.APPROVAL), ("warn", Answer.PASS, Answer.WARN)],
    ids=["stop", "approval", "warn"],
)
def test_the_mode_decides_what_an_excess_means(mode: str, answer: Answer, line: Answer) -> None:
    verdict = decide(limited(replace(WEEK, mode=mode)))
    assert (verdict.answer, verdict.lines[-1].answer) == (answer, line)


def test_exactly_the_limit_passes_and_one_more_does_not() -> None:
    room = replace(WEEK, used=0, reserved=0, amount=24 * HOUR)
    assert decide(limited(room)).answer == Answer.PASS
    assert decide(limited(replace(room, reserved=1))).answer == Answer.REFUSE


def test_an_approval_lifts_only_limits_that_ask_for_one() -> None:
    asks = replace(WEEK, mode="approval")
    assert decide(limited(asks, is_approved=True)).answer == Answer.PASS
    assert decide(limited(asks, WEEK, is_approved=True)).answer == Answer.REFUSE


def test_a_refusal_outranks_an_approval() -> None:
    closed = replace(GOOD.pool, is_accepting=False)
    assert decide(limited(replace(WEEK, mode="approval"), pool=closed)).answer == Answer.REFUSE


def test_too_many_at_once_wait_and_are_not_refused() -> None:
    verdict = decide(limited(AT_ONCE))
    assert (verdict.answer, verdict.lines[-1].answer) == (Answer.PASS, Answer.WAIT)
    assert verdict.lines[-1].words == "1 run more would make 5 of 4 at once."


def test_runs_at_once_that_only_warn_let_it_start() -> None:
    verdict = decide(limited(replace(AT_ONCE, mode="warn")))
    assert (verdict.answer, verdict.lines[-1].answer) == (Answer.PASS, Answer.WARN)


def test_what_is_not_asked_for_is_said_once() -> None:
    spend = LimitFacts(
        name="API spend a week", unit="api_micros", window="week", amount=20_000_000, mode="stop", used=1_500_000, reserved=0, asked=0
    )
    assert decide(limited(spend)).lines[-1].words == "1.50 of 20.00 this week; it asks for none."


@pytest.mark.parametrize(
    ("changed", "rule", "reason"),
    [
        (
            {"workspace": WorkspaceFacts(name="AutoGo", status="configuring", missing=("Choose a region.", "Bind a pool."))},
            "Workspace",
            "AutoGo is still being set up. Choose a region. Bind a pool.",
        ),
        (
            {"workspace": WorkspaceFacts(name="AutoGo", status="archived")},
            "Workspace",
            "AutoGo is archived. Unarchive it before launching.",
        ),
        (
            {"agent": replace(GOOD.agent, pools=("a100", "h100"))},
            "Agent may use the pool",
            "Worker version 3 may run on a100, h100. Choose a100 or h100, or publish a version that may run on local.",
        ),
        (
            {"pool": replace(GOOD.pool, is_accepting=False)},
            "Pool takes work",
            "local takes no new work. Choose another pool, or ask an operator to open it.",
        ),
        (
            {"holdout": HoldoutFacts(in_contract=True)},
            "Holdout stays apart",
            "local gives no isolation; this benchmark has a holdout. "
            "Choose a pool with isolation, or let an owner accept it in the contract with a reason.",
        ),
        (
            {"holdout": HoldoutFacts(inputs=("exam@2",)), "pool": replace(GOOD.pool, isolation="user", isolation_words="own users")},
            "Holdout is not trained on",
            "An agent of kind train reads exam@2. Leave the holdout out, or score with an agent of kind evaluate.",
        ),
        ({"agent": replace(GOOD.agent, slots=5)}, "Slots", "The agent wants 5 of 4 slots. Choose a larger pool."),
    ],
)
def test_each_rule_says_no_alone_and_how_to_get_a_yes(changed: dict[str, Any], rule: str, reason: str) -> None:
    assert decide(GOOD).answer == Answer.PASS
    verdict = decide(replace(GOOD, **changed))
    assert verdict.answer == Answer.REFUSE
    assert [line.name for line in verdict.lines if line.answer == Answer.REFUSE] == [rule]
    assert verdict.reasons == [reason]


def test_an_owner_may_accept_that_a_holdout_is_not_isolated() -> None:
    verdict = decide(replace(GOOD, holdout=HoldoutFacts(in_contract=True, accepted="A public set.")))
    assert verdict.answer == Answer.PASS
    assert "an owner accepted that: A public set." in next(line.words for line in verdict.lines if line.name == "Holdout stays apart")


def test_facts_come_back_from_json_as_they_were() -> None:
    facts = limited(WEEK, AT_ONCE, is_approved=True, agent=replace(GOOD.agent, pools=("local",)), holdout=HoldoutFacts(inputs=("exam@2",)))
    assert facts_from(json.loads(json.dumps(facts.as_json()))) == facts


def test_facts_of_another_form_are_not_decided_upon() -> None:
    with pytest.raises(ValueError, match="form 1"):
        facts_from({"rules": [], "limits": []})
