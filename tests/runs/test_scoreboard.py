"""Who leads: ties share a rank, what is no number comes last, only scores under the newest contract compare."""

import math
from collections.abc import Iterator

import pytest
from django.test import Client

from runs.models import Evaluation, Run
from runs.queries.scoreboard import scoreboard
from tests.factories_runs import Laboratory, launch, make_laboratory
from workspaces.access import Actor
from workspaces.audit import Draft, command
from workspaces.commands.benchmark import publish_contract
from workspaces.models import Benchmark
from workspaces.verbs import Verb

pytestmark = pytest.mark.django_db


@command(Verb.RUN_ENDED, needs=None, by_system=True)
def record(event: Draft, *, actor: Actor, run: Run, value: float, error: float | None, metric: str) -> Evaluation:
    """What collecting a run's score line does, without the run."""
    evaluation = Evaluation.objects.create(
        run=run, benchmark=run.benchmark, contract=run.contract, metric=metric, value=value, standard_error=error, samples=100
    )
    event.created(evaluation)
    return evaluation


@pytest.fixture
def laboratory() -> Iterator[Laboratory]:
    made = make_laboratory(at_once=50, weekly_gpu_hours=10_000)
    with made.opened():
        yield made


def score(laboratory: Laboratory, name: str, value: float, error: float | None = None, metric: str = "accuracy") -> None:
    run = launch(laboratory, name=name, seed=Run.objects.count())
    record(actor=Actor.system(job_id="test"), run=run, value=value, error=error, metric=metric)


def board() -> list[tuple[int | None, str]]:
    return [(row.rank, row.evaluation.run.name) for row in scoreboard(Benchmark.objects.get()).scores]


def test_ties_share_a_rank_and_no_numbers_come_last(laboratory: Laboratory) -> None:
    for name, value in [("nan", math.nan), ("b", 0.9), ("inf", math.inf), ("c", 0.5), ("a", 0.9), ("minus", -math.inf), ("d", 0.7)]:
        score(laboratory, name, value)
    expected = [(1, "b"), (1, "a"), (3, "d"), (4, "c")]
    assert board()[:4] == expected
    assert set(board()[4:]) == {(None, "nan"), (None, "inf"), (None, "minus")}
    assert board() == board()
    found = scoreboard(Benchmark.objects.get())
    assert (found.tied, found.total) == (2, 7)
    assert found.lead == pytest.approx(0.2)


def test_minimize_turns_the_order(laboratory: Laboratory) -> None:
    publish_contract(actor=laboratory.owner, benchmark=Benchmark.objects.get(), metric="seconds", direction="minimize")
    score(laboratory, "slow", 9.0, metric="seconds")
    score(laboratory, "fast", 1.0, metric="seconds")
    score(laboratory, "broken", math.nan, metric="seconds")
    assert board() == [(1, "fast"), (2, "slow"), (None, "broken")]


def test_only_the_newest_contract_compares(laboratory: Laboratory) -> None:
    score(laboratory, "old", 0.99)
    publish_contract(actor=laboratory.owner, benchmark=Benchmark.objects.get(), metric="accuracy", direction="maximize", terms="stricter")
    assert board() == []
    score(laboratory, "new", 0.5)
    score(laboratory, "side", 0.7, metric="loss")
    found = scoreboard(Benchmark.objects.get())
    assert board() == [(1, "new")]
    assert [(row.rank, row.is_current, row.evaluation.run.name) for row in found.older] == [(None, False, "old")]


def test_lead_is_measured_in_its_own_error(laboratory: Laboratory) -> None:
    score(laboratory, "first", 0.9, 0.03)
    assert scoreboard(Benchmark.objects.get()).lead is None
    score(laboratory, "second", 0.8, 0.04)
    found = scoreboard(Benchmark.objects.get())
    assert found.lead_in_errors == pytest.approx(2.0)
    score(laboratory, "third", 0.85)
    assert scoreboard(Benchmark.objects.get()).lead_in_errors is None


def test_page_answers_who_leads_and_whether_to_trust_it(laboratory: Laboratory, client: Client) -> None:
    assert laboratory.owner.user is not None
    score(laboratory, "first", 0.9, 0.03)
    score(laboratory, "second <b>", 0.8, 0.04)
    client.force_login(laboratory.owner.user)
    # The test holds the scope open as a job would; the page opens its own inside.
    page = client.get("/workspaces/lab/benchmarks/accuracy/").content.decode()
    assert "first leads with 0.900 ± 0.030, 0.100 ± 0.050 ahead" in page
    assert "names no holdout" in page
    assert "A run without isolation can read" in page
    assert "second &lt;b&gt;" in page
    page = client.get("/workspaces/lab/datasets/table/").content.decode()
    assert "second &lt;b&gt;" in page
