"""Who leads: ties share a rank, what is no number comes last, only scores under the newest contract compare."""

import math
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client

from runs.models import Evaluation, Run
from runs.queries.ranking import FINITE
from runs.queries.scoreboard import BoardView, scoreboard, scores_under
from runs.queries.ties import ahead
from tests.factories_runs import Laboratory, launch, make_laboratory
from workspaces.access import Actor
from workspaces.audit import Draft, command
from workspaces.commands.benchmark import publish_contract
from workspaces.models import Benchmark, Contract
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


@pytest.mark.parametrize(("direction", "order"), [("maximize", "bafcd"), ("minimize", "dcbaf")])
def test_by_the_other_tie_rule_the_earlier_of_equal_scores_ranks_first(laboratory: Laboratory, direction: str, order: str) -> None:
    benchmark = Benchmark.objects.get()
    asked: dict[str, Any] = {"metric": "accuracy", "direction": direction, "tie_rule": "earlier_first"}
    publish_contract(actor=laboratory.owner, benchmark=benchmark, **asked)
    for name, value in [("nan", math.nan), ("b", 0.9), ("inf", math.inf), ("c", 0.5), ("a", 0.9), ("d", 0.3), ("f", 0.9)]:
        score(laboratory, name, value)
    assert board()[:5] == [(place, name) for place, name in enumerate(order, start=1)]
    assert {rank for rank, _ in board()[5:]} == {None}
    found = scoreboard(benchmark)
    leader, follower = found.leader, found.follower
    assert leader is not None
    assert follower is not None
    assert (leader.evaluation.run.name, follower.evaluation.run.name, found.tied) == (order[0], order[1], 1)
    # A page that begins later, or is sorted otherwise, tells the same of the lead, and ranks as the whole board does.
    later = scoreboard(benchmark, BoardView(start=2), size=2)
    assert [(row.rank, row.evaluation.run.name) for row in later.scores] == board()[2:4]
    assert (later.leader and later.leader.evaluation, later.follower and later.follower.evaluation) == (
        leader.evaluation,
        follower.evaluation,
    )
    # And so does a promotion's check, which counts who stands before.
    rows = scores_under(found.contract or Contract()).filter(FINITE)
    assert [ahead(rows, found.contract or Contract(), row.evaluation).count() + 1 for row in found.scores[:5]] == [1, 2, 3, 4, 5]


def test_a_lead_by_the_tie_rule_alone_is_told_as_such(laboratory: Laboratory, client: Client) -> None:
    benchmark = Benchmark.objects.get()
    publish_contract(actor=laboratory.owner, benchmark=benchmark, metric="accuracy", direction="maximize", tie_rule="earlier_first")
    score(laboratory, "first", 0.9, 0.0)
    score(laboratory, "second", 0.9, 0.0)
    assert scoreboard(benchmark).lead_in_errors == 0.0
    assert laboratory.owner.user is not None
    client.force_login(laboratory.owner.user)
    page = client.get(f"/workspaces/{laboratory.workspace.slug}/benchmarks/{benchmark.slug}/").content.decode()
    assert "first leads with 0.9" in page
    assert "the earliest of equal scores" in page
    assert "no rank is shared" in page
    told = client.get(f"/api/v1/workspaces/{laboratory.workspace.slug}/benchmarks/{benchmark.slug}/scoreboard").json()
    assert (told["tie_rule"], [(row["rank"], row["sharing"]) for row in told["items"]]) == ("earlier_first", [(1, 1), (2, 1)])


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
