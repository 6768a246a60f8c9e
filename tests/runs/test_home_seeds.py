"""Where a contract ranks over seeds, home, the checks of a promotion and policies go by rows of runs: one lucky seed leads nothing."""

import math
from collections.abc import Iterator
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from runs.checks.policy_facts import _results
from runs.checks.score import _place
from runs.models import Evaluation, Run
from runs.policy.document import Policy
from runs.queries import home_seeds
from runs.queries.home_aim import aim
from runs.queries.home_scores import Board, boards, promotable
from runs.queries.home_seeds import seed_trend
from tests.factories_pages import add_artifact, client_of, copy_runs, score_runs
from tests.factories_runs import Laboratory, launch, make_laboratory
from workspaces.commands.benchmark import publish_contract
from workspaces.commands.objective import set_objective
from workspaces.models import Benchmark
from workspaces.queries.objective import current_objective
from workspaces.queries.registry import current_contract

pytestmark = pytest.mark.django_db
STEADY, LUCKY = (0.80, 0.82), (0.95, 0.35)
HOSTILE = "<script>alert(1)</script>"


@pytest.fixture
def laboratory() -> Iterator[Laboratory]:
    made = make_laboratory()
    with made.opened():
        yield made


def publish(laboratory: Laboratory, over: str = "mean", direction: str = "maximize") -> None:
    publish_contract(
        actor=laboratory.owner, benchmark=Benchmark.objects.get(), metric="accuracy", direction=direction, unit="acc", over_seeds=over
    )


def score(laboratory: Laboratory, rate: object, values: tuple[float, ...], *, hours_ago: float = 0, first_seed: int = 1) -> list[Run]:
    """Runs that are alike but for the seed, the second a second after the first."""
    pattern = Run.objects.first() or launch(laboratory)
    runs: list[Run] = []
    for place, value in enumerate(values):
        (run,) = copy_runs(
            actor=laboratory.owner, pattern=pattern, count=1, contract_id=contract().pk, parameters={"rate": rate}, seed=first_seed + place,
            name=f"rate {rate} seed {first_seed + place}",
        )  # fmt: skip
        moment = timezone.now() - timedelta(hours=hours_ago) + timedelta(milliseconds=place)
        score_runs(actor=laboratory.owner, scores={run: (value, None)}, created_at=moment)
        runs.append(run)
    return runs


def contract() -> Any:
    found = current_contract(Benchmark.objects.get().pk)
    assert found is not None
    return found


def day_ago() -> datetime:
    return timezone.now() - timedelta(days=1)


def the_board() -> Board:
    (board,) = boards(day_ago())
    return board


def test_one_lucky_seed_neither_leads_nor_reaches_the_objective(laboratory: Laboratory) -> None:
    publish(laboratory)
    set_objective(actor=laboratory.owner, statement="Be good", benchmark="accuracy", target=0.9)
    score(laboratory, "steady", STEADY, hours_ago=48)
    score(laboratory, HOSTILE, LUCKY)
    board = the_board()
    assert board.row is not None
    assert (board.row.row.parameters, board.row.count) == ({"rate": "steady"}, 2)
    assert board.row.value == pytest.approx(0.81)
    assert board.news == "same leader, 2 new scores"
    found = aim(current_objective(), [board])
    assert found is not None
    assert (found.is_reached, found.missing) == (False, "0.090 acc")
    page = client_of(laboratory.owner).get("/workspaces/lab/").content.decode()
    assert "· reached" not in page
    assert "Best mean, acc" in page
    assert "of 2 runs, 95 %" in page
    assert "0.95" not in page
    assert HOSTILE not in page

    score(laboratory, "better", (0.90, 0.96))
    assert the_board().news.startswith("new leader, +0.12")
    found = aim(current_objective(), [the_board()])
    assert found is not None
    assert found.is_reached
    assert "· reached" in client_of(laboratory.owner).get("/workspaces/lab/").content.decode()


def test_a_mean_that_moves_by_a_new_seed_is_said(laboratory: Laboratory) -> None:
    publish(laboratory)
    score(laboratory, "steady", STEADY, hours_ago=48)
    score(laboratory, "steady", (0.75,), first_seed=9)
    assert the_board().news == "same leader, −0.020, 1 new score"


@pytest.mark.parametrize(
    ("over", "direction", "trend"),
    [("mean", "maximize", [0.95, 0.81, 0.81]), ("median", "minimize", [0.95, 0.65, 0.35]), ("mean", "minimize", [0.95, 0.65, 0.58])],
)
def test_the_trend_is_the_row_that_led_hour_after_hour(laboratory: Laboratory, over: str, direction: str, trend: list[float]) -> None:
    publish(laboratory, over, direction)
    score(laboratory, "lucky", (0.95,), hours_ago=6)
    score(laboratory, "lucky", (0.35,), hours_ago=4, first_seed=2)
    score(laboratory, "steady", STEADY, hours_ago=4)
    score(laboratory, "lucky", (0.35 if over == "median" else 0.44,), hours_ago=2, first_seed=3)
    score(laboratory, "lost", (math.nan,), hours_ago=2)
    found = seed_trend(contract(), 100)
    assert found == pytest.approx(trend)
    row = the_board().row
    assert row is not None
    assert found[-1] == pytest.approx(row.value), "the curve ends where the board stands"
    assert seed_trend(contract(), 1) == found[-1:]


def test_a_new_measurement_of_a_run_takes_the_place_of_the_old_one_in_the_trend(laboratory: Laboratory) -> None:
    publish(laboratory)
    (run,) = score(laboratory, "steady", (0.5,), hours_ago=6)
    model = add_artifact(actor=laboratory.owner, run=run, path="a.model", content=b"x", kind="model")
    for hours, value in ((4, 0.7), (2, 0.6)):
        (judge,) = copy_runs(actor=laboratory.owner, pattern=run, count=1, kind="evaluate", name=f"judge {hours}")
        moment = timezone.now() - timedelta(hours=hours)
        score_runs(actor=laboratory.owner, scores={judge: (value, None)}, created_at=moment, subject_artifact=model)
    assert seed_trend(contract(), 9) == [0.5, 0.7, 0.6]
    row = the_board().row
    assert row is not None
    assert (row.value, row.count) == (0.6, 1)
    (entry,) = promotable([the_board()])
    assert entry.artifact == model


def test_so_many_scores_that_nobody_can_read_them_all_have_no_trend(laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(laboratory)
    score(laboratory, "steady", STEADY, hours_ago=6)
    assert len(seed_trend(contract(), 9)) == 1
    monkeypatch.setattr(home_seeds, "TREND_SCORES", 1)
    newest = contract()
    with CaptureQueriesContext(connection) as asked:
        assert seed_trend(newest, 9) == []
    assert not [each for each in asked if "DENSE_RANK" in each["sql"]], "they are counted, and not ranked"


def test_worth_promoting_is_what_each_run_of_the_leading_row_made(laboratory: Laboratory) -> None:
    publish(laboratory)
    models = {}
    for name, values in (("steady", STEADY), ("lucky", LUCKY)):
        for run in score(laboratory, name, values):
            models[run.name] = add_artifact(actor=laboratory.owner, run=run, path="a.model", content=run.name.encode(), kind="model")
    found = promotable([the_board()])
    assert {entry.artifact for entry in found} == {models["rate steady seed 1"], models["rate steady seed 2"]}
    page = client_of(laboratory.owner).get("/workspaces/lab/").content.decode()
    assert "mean of 2 runs</a>" in page
    assert models["rate lucky seed 1"].public_id not in page


def test_nothing_leads_where_no_row_has_a_rank(laboratory: Laboratory) -> None:
    publish(laboratory)
    set_objective(actor=laboratory.owner, statement="Be good", benchmark="accuracy", target=0.9)
    score(laboratory, "lost", (math.nan, 1.0))
    board = the_board()
    assert (board.leader, board.news) == (None, "2 new scores, none of them a number")
    assert promotable([board]) == []
    assert client_of(laboratory.owner).get("/workspaces/lab/").status_code == 200


def test_the_place_in_a_promotions_check_and_the_best_of_a_policy_are_the_rows(laboratory: Laboratory) -> None:
    publish(laboratory)
    score(laboratory, "steady", STEADY)
    score(laboratory, "lucky", LUCKY)
    score(laboratory, "lost", (1.0, math.nan))
    evaluations = {row.run.name: row for row in Evaluation.objects.select_related("run", "subject_artifact")}
    words = _place(contract(), evaluations["rate lucky seed 1"])
    assert words == "by the mean of 2 runs, 0.6500, rank 2 of 2 when it was looked at"
    assert "rank 1 of 2" in _place(contract(), evaluations["rate steady seed 1"])
    assert "had no rank" in _place(contract(), evaluations["rate lost seed 1"])
    run = Run.objects.select_related("agent", "benchmark").all()[0]
    policy = cast(Policy, SimpleNamespace(does="launch_run", action={"agent": run.agent.slug, "benchmark": run.benchmark.slug}))
    assert _results(policy)["best"] == pytest.approx(0.81)


def test_a_contract_without_seeds_asks_not_one_statement_more(laboratory: Laboratory) -> None:
    publish(laboratory, over="")
    score(laboratory, "lucky", LUCKY, hours_ago=48)
    score(laboratory, "steady", STEADY)
    boards(day_ago())
    with CaptureQueriesContext(
        connection,
    ) as asked:
        board = the_board()
    assert (len(asked), board.row, getattr(board.leader, "value", None)) == (3, None, 0.95)
