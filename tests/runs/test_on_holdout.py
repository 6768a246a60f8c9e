"""A score counts as measured on a contract's holdout if a run that evaluates was given it: on the board, and in a promotion."""

from typing import Any

import pytest
from django.test import Client

from runs.checks.candidate import candidate_of
from runs.checks.eligibility import facts_of
from runs.commands.approval import decide_approval
from runs.eligibility import Fact, Verdict
from runs.models import Artifact, Evaluation
from runs.queries.board_checks import checks_of
from runs.queries.scoreboard import scoreboard
from tests.factories import make_member
from tests.factories_pages import client_of, score_runs
from tests.factories_promotions import make_candidate, propose, score_of
from tests.factories_registry import make_agent_version, make_dataset_version
from tests.factories_runs import Laboratory, launch, make_laboratory
from workspaces.access import Actor, Kind, Permission
from workspaces.audit import Draft, Refusal, command
from workspaces.commands.benchmark import publish_contract
from workspaces.models import Benchmark, Contract, DatasetVersion
from workspaces.verbs import Verb

pytestmark = pytest.mark.django_db


@pytest.fixture
def laboratory() -> Laboratory:
    made = make_laboratory(weekly_gpu_hours=1000)
    with made.opened():
        make_dataset_version(made.owner, "unseen", role="holdout")
        make_agent_version(made.owner, "judge", kind="evaluate")
    return made


def publish(laboratory: Laboratory, **parts: Any) -> None:
    publish_contract(
        actor=laboratory.owner, benchmark=Benchmark.objects.get(), metric="accuracy", direction="maximize",
        holdout=DatasetVersion.objects.get(dataset__slug="unseen"), accepts_no_isolation_reason="a test", **parts,
    )  # fmt: skip


@command(Verb.CONTRACT_PUBLISHED, needs=Permission.EDIT_REGISTRY, kind=Kind.BENCHMARK)
def copy_contract(event: Draft, /, *, actor: Actor) -> None:
    """As a frozen copy has it whose holdout stayed where it is."""
    event.created(
        Contract.objects.create(
            benchmark=Benchmark.objects.get(), version=2, metric="accuracy", direction="maximize", content={"holdout": "ab" * 32},
            content_hash="0" * 64,
        )
    )  # fmt: skip


def measure(laboratory: Laboratory, artifact: Artifact, value: float, *datasets: str) -> Evaluation:
    """A judge's word on the artifact, with these datasets beside it."""
    run = launch(laboratory, agent="judge", datasets=datasets, artifacts=(artifact.pk.hex,))
    score_runs(actor=laboratory.owner, scores={run: (value, 0.01)}, subject_artifact=artifact)
    return Evaluation.objects.get(run=run)


def of_board() -> tuple[str, str]:
    check = checks_of(scoreboard(Benchmark.objects.get()))[0]
    return check["verdict"], check["line"]


def facts(artifact: Artifact) -> dict[str, Fact]:
    found = Artifact.objects.select_related("blob", "run__contract").get(pk=artifact.pk)
    return {fact.key: fact for fact in facts_of(candidate_of(found, "champion"))}


def test_the_board_tells_a_measurement_from_what_only_says_so(laboratory: Laboratory) -> None:
    with laboratory.opened():
        publish(laboratory)
        artifact = make_candidate(laboratory, value=0.8)
        assert of_board() == ("no", f"{artifact.run.name} reported its score itself.")
        beside = measure(laboratory, artifact, 0.85, "table")
        assert of_board() == ("no", f"{beside.run.name} did not read unseen, version 1.")
        measure(laboratory, artifact, 0.9, "unseen")
        assert of_board() == ("yes", "unseen")


def test_over_seeds_each_score_of_the_row_counts(laboratory: Laboratory) -> None:
    with laboratory.opened():
        publish(laboratory, over_seeds="mean")
        first, second = make_candidate(laboratory, seed=1), make_candidate(laboratory, seed=2, content=b"other weights")
        measure(laboratory, first, 0.7, "unseen")
        assert of_board() == ("no", "Of the scores that lead 1 of 2 come from runs that did not evaluate on unseen, version 1.")
        measure(laboratory, second, 0.7, "unseen")
        assert of_board() == ("yes", "unseen")


def test_a_promotion_wants_a_measurement_on_the_holdout(laboratory: Laboratory) -> None:
    with laboratory.opened():
        publish(laboratory)
        artifact = make_candidate(laboratory, value=0.8)
        score = facts(artifact)["score"]
        assert (score.verdict, "reported it itself, and contract 2 measures on unseen@1" in score.words) == (Verdict.UNKNOWN, True)
        measure(laboratory, artifact, 0.95, "table")
        score = facts(artifact)["score"]
        assert (score.verdict, "did not read unseen@1" in score.words) == (Verdict.UNKNOWN, True)
        with pytest.raises(Refusal, match="did not read unseen@1"):
            propose(laboratory.owner, artifact)
        measured = measure(laboratory, artifact, 0.7, "unseen")
        measure(laboratory, artifact, 0.99, "table")
        assert facts(artifact)["score"].verdict == Verdict.PASS
        promotion, _ = propose(laboratory.owner, artifact)
        assert promotion.evaluation == measured, "not what is newer and better, and was measured elsewhere"


def test_nothing_is_compared_with_what_was_not_measured_on_the_holdout(laboratory: Laboratory) -> None:
    with laboratory.opened():
        champion = make_candidate(laboratory, value=0.6)
        _, asked = propose(laboratory.owner, champion)
        decide_approval(actor=make_member(laboratory.workspace, "approver"), approval=asked, approves=True, seen_hash=asked.content_hash)
        publish(laboratory)
        measure(laboratory, champion, 0.5, "table")
        artifact = make_candidate(laboratory, content=b"better")
        measure(laboratory, artifact, 0.7, "unseen")
        compared = facts(artifact)["comparison"]
        assert (compared.verdict, "What stands was not measured on the holdout." in compared.words) == (Verdict.UNKNOWN, True)
        measure(laboratory, champion, 0.6, "unseen")
        assert facts(artifact)["comparison"].verdict == Verdict.PASS


def test_a_copy_whose_holdout_is_elsewhere_measures_nothing_on_it(laboratory: Laboratory, client: Client) -> None:
    with laboratory.opened():
        pattern = launch(laboratory)
        copy_contract(actor=laboratory.owner)
        contract = Contract.objects.get(version=2)
        assert launch(laboratory, name="bare").contract == contract, "nothing of the holdout lies here that would have to be kept apart"
        artifact = make_candidate(laboratory, contract_id=contract.pk, kind="evaluate")
        assert pattern.contract != contract
        assert of_board() == (
            "unknown", "The contract's holdout is not in this workspace, so nothing says that the runs had not seen the data."
        )  # fmt: skip
        score = facts(artifact)["score"]
        assert (score.verdict, "is not in this workspace" in score.words) == (Verdict.UNKNOWN, True)
        evaluation = score_of(artifact)
    client = client_of(laboratory.owner)
    page = client.get("/workspaces/lab/benchmarks/accuracy/").content.decode()
    assert "names no holdout" not in page
    assert "not in this workspace" in client.get(f"/workspaces/lab/evaluations/{evaluation.public_id}/").content.decode()
