"""A contract with several metrics, and one that ranks over seeds: what stands where, on the page, as CSV and in the API."""

import csv
import io
import math
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client

from runs.models import Evaluation, Run
from runs.queries.scoreboard import BoardView, Scoreboard, scoreboard, scores_under
from runs.queries.seed_board import place_of
from tests.factories_pages import add_artifact, copy_runs, score_runs
from tests.factories_people import signed_in
from tests.factories_registry import make_agent_version
from tests.factories_runs import Laboratory, launch, make_laboratory
from tests.factories_submissions import finish
from tests.runs.test_scoreboard import record
from workspaces.access import Actor
from workspaces.commands.benchmark import publish_contract
from workspaces.contract_metrics import Metric
from workspaces.models import Benchmark
from workspaces.queries.registry import current_contract

pytestmark = pytest.mark.django_db
PAGE = "/workspaces/lab/benchmarks/accuracy/"
API = "/api/v1/workspaces/lab/benchmarks/accuracy/scoreboard"
BESIDE = (Metric("seconds", "s", "minimize"), Metric("recall"))


@pytest.fixture
def laboratory() -> Iterator[Laboratory]:
    made = make_laboratory(at_once=50, weekly_gpu_hours=10_000)
    with made.opened():
        yield made


def publish(laboratory: Laboratory, **parts: Any) -> None:
    publish_contract(actor=laboratory.owner, benchmark=Benchmark.objects.get(), metric="accuracy", direction="maximize", **parts)


def score(laboratory: Laboratory, name: str, *, rate: int = 0, seed: int | None = None, **metrics: float) -> None:
    asked: dict[str, Any] = {"parameters": {"rate": rate}} if rate else {}
    run = launch(laboratory, name=name, seed=seed, **asked)
    for metric, value in metrics.items():
        record(actor=Actor.system(job_id="test"), run=run, value=value, error=None, metric=metric)


def board(**view: Any) -> Scoreboard:
    return scoreboard(Benchmark.objects.get(), BoardView(**view))


def names(found: Scoreboard) -> list[tuple[int | None, str]]:
    return [(row.rank, row.evaluation.run.name) for row in found.scores]


def csv_rows(client: Client, query: str = "") -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(b"".join(client.get(f"{PAGE}csv/{query}")).decode())))


def test_each_metric_of_the_contract_is_a_column_and_ranks_in_its_own_direction(laboratory: Laboratory) -> None:
    publish(laboratory, metrics=BESIDE)
    score(laboratory, "good", accuracy=0.9, seconds=30.0, recall=0.5)
    score(laboratory, "fast", accuracy=0.8, seconds=10.0, recall=0.5)
    score(laboratory, "lost", accuracy=0.7, seconds=math.nan)
    first = board()
    assert (first.columns, names(first)) == (("seconds", "recall"), [(1, "good"), (2, "fast"), (3, "lost")])
    assert [other.value for other in first.scores[1].others] == [10.0, 0.5]
    assert names(board(by="seconds")) == [(1, "fast"), (2, "good"), (None, "lost")]
    assert names(board(by="recall")) == [(1, "good"), (1, "fast")]
    assert names(board(by="no metric of the contract")) == names(first)
    by_recall = board(by="recall")
    assert [row.run.name for row in by_recall.unscored.rows] == []  # runs that have not ended are none of them
    # Chosen columns keep the direction that the contract gives them, whatever the address says.
    assert board(metrics=("seconds", "recall"), lower=("recall",)).view.lower == ("seconds",)

    client = signed_in(laboratory.owner)
    page = client.get(f"{PAGE}?by=seconds").content.decode()
    assert "fast leads with 10 s, 20 ahead" in page
    rows = csv_rows(client, "?by=seconds")
    assert [(row["rank"], row["name"], row["score"], row["accuracy"], row["recall"]) for row in rows] == [
        ("1", "fast", "10.0", "0.8", "0.5"), ("2", "good", "30.0", "0.9", "0.5"), ("", "lost", "NaN", "0.7", ""),
    ]  # fmt: skip
    assert "mean rank" not in rows[0]
    answer = client.get(f"{API}?by=seconds").json()
    assert (answer["metric"], answer["unit"], answer["direction"]) == ("seconds", "s", "minimize")
    assert [entry["metric"] for entry in answer["metrics"]] == ["accuracy", "seconds", "recall"]
    assert [[entry["value"] for entry in item["metrics"]] for item in answer["items"]] == [[0.8, 0.5], [0.9, 0.5], [0.7, None]]


def test_runs_that_differ_by_their_seed_are_one_row(laboratory: Laboratory) -> None:
    publish(laboratory, over_seeds="mean", metrics=(Metric("seconds", "s", "minimize"),))
    for seed, value in enumerate([0.8, 0.9, 0.7]):
        score(laboratory, f"a{seed}", rate=1, seed=seed, accuracy=value, seconds=float(seed))
    score(laboratory, "lucky", rate=2, seed=1, accuracy=0.95)
    score(laboratory, "unlucky", rate=2, seed=2, accuracy=0.55)
    score(laboratory, "same", rate=2, seed=2, accuracy=0.75)
    score(laboratory, "lost", rate=3, seed=1, accuracy=1.0)
    score(laboratory, "nan", rate=3, seed=2, accuracy=math.nan)
    found = board().over_seeds
    assert found is not None
    rows = [(row.rank, row.parameters, row.score.count, row.seeds) for row in found.rows]
    assert rows == [(1, {"rate": 1}, 3, 3), (2, {"rate": 2}, 3, 2), (None, {"rate": 3}, 2, 2)]
    assert [row.score.value for row in found.rows[:2]] == [pytest.approx(0.8), pytest.approx(0.75)]
    first = found.rows[0].score
    assert first.interval is not None
    # Standard error 0.1 / sqrt(3), two degrees of freedom: 4.303.
    assert [first.interval.low, first.interval.high] == pytest.approx([0.8 - 0.248414, 0.8 + 0.248414], abs=1e-5)
    assert found.rows[0].others[0].value == 1.0
    assert found.rows[1].others[0].count == 0
    assert (found.total, found.leader, found.follower) == (3, found.rows[0], found.rows[1])
    assert len(board(is_single=True).scores) == Run.objects.count() == 8
    assert [row.parameters for row in (board(by="seconds").over_seeds or found).rows] == [{"rate": 1}]

    client = signed_in(laboratory.owner)
    page = client.get(PAGE).content.decode()
    assert "the mean of 3 runs" in page
    assert "Student’s t" in page
    assert [(row["rank"], row["parameters"], row["runs"], f"{float(row['accuracy, mean']):.2f}") for row in csv_rows(client)] == [
        ("1", "rate 1", "3", "0.80"), ("2", "rate 2", "3", "0.75"), ("", "rate 3", "2", "nan"),
    ]  # fmt: skip
    answer = client.get(API).json()
    assert [(row["rank"], row["score"]["runs"], row["parameters"]) for row in answer["seed_rows"]] == [
        (1, 3, {"rate": 1}), (2, 3, {"rate": 2}), (None, 2, {"rate": 3}),
    ]  # fmt: skip
    assert answer["items"] == []
    whole = client.get(f"{API}?limit=2").json()
    rest = client.get(f"{API}?limit=2&cursor={whole['next']}").json()
    assert [row["parameters"]["rate"] for row in whole["seed_rows"] + rest["seed_rows"]] == [1, 2, 3]
    assert rest["next"] is None


def test_a_run_that_is_measured_again_and_again_counts_once_by_its_newest_evaluation(laboratory: Laboratory) -> None:
    """As a contract check does it, whose every evaluation is one more score of the same run."""
    make_agent_version(laboratory.owner, "judge", code=b"print('judge')\n", kind="evaluate")
    publish(laboratory, over_seeds="mean")
    for seed, value in ((1, 0.5), (2, 0.7)):
        score(laboratory, f"own-{seed}", rate=1, seed=seed, accuracy=value)
    model = add_artifact(actor=laboratory.owner, run=Run.objects.get(name="own-1"), path="outputs/model.json", content=b"{}")
    for number, value in enumerate((0.1, 0.2, 0.9)):
        finish(launch(laboratory, agent="judge", artifacts=(model.pk.hex,), name=f"judged-{number}", seed=number), value)
    found = board().over_seeds
    assert found is not None
    (row,) = found.rows
    assert (row.score.count, row.seeds) == (2, 2)
    assert row.score.value == pytest.approx(0.8), "0.9 measured last of the one, 0.7 reported by the other"
    assert row.score.interval is not None
    assert row.score.interval.high - row.score.interval.low == pytest.approx(2 * 12.7062 * 0.1, rel=1e-4), "one degree of freedom"
    assert len(board(is_single=True).scores) == 5, "each of them is on the other board"


def test_a_median_ranks_where_the_contract_says_so_and_equal_rows_share_a_rank(laboratory: Laboratory) -> None:
    publish(laboratory, over_seeds="median")
    for rate, values in ((1, (0.1, 0.6, 0.7)), (2, (0.5, 0.6, 0.9)), (3, (0.4, 0.6))):
        for seed, value in enumerate(values):
            score(laboratory, f"{rate}-{seed}", rate=rate, seed=seed, accuracy=value)
    found = board().over_seeds
    assert found is not None
    assert [(row.rank, row.sharing, row.parameters["rate"]) for row in found.rows] == [(1, 2, 1), (1, 2, 2), (3, 1, 3)]
    assert found.rows[0].score.interval is None  # three values say nothing of a median with 95 %
    assert "2 share the lead with 0.6" in signed_in(laboratory.owner).get(PAGE).content.decode()


@pytest.mark.parametrize("over", ["mean", "median"])
def test_numbers_too_large_to_be_averaged_have_no_rank_and_break_nothing(laboratory: Laboratory, over: str) -> None:
    publish(laboratory, over_seeds=over, metrics=BESIDE[:1])
    for seed in range(2):  # a run may say anything
        score(laboratory, f"huge-{seed}", rate=4, seed=seed, accuracy=1e300 * (seed + 1), seconds=1.7e308)
        score(laboratory, f"good-{seed}", rate=5, seed=seed, accuracy=0.5)
    found = board().over_seeds
    assert found is not None
    assert [(row.rank, row.parameters["rate"]) for row in found.rows] == [(1, 5), (None, 4)]
    assert signed_in(laboratory.owner).get(PAGE).status_code == 200


def test_rows_of_seeds_follow_the_tie_rule(laboratory: Laboratory) -> None:
    publish(laboratory, over_seeds="mean", tie_rule="earlier_first")
    for rate, values in ((1, (0.5, 0.7)), (2, (0.8, 0.8)), (3, (0.7, 0.5)), (4, (0.1,))):
        for seed, value in enumerate(values):
            score(laboratory, f"r{rate}s{seed}", rate=rate, seed=seed, accuracy=value)
    found = board().over_seeds
    assert found is not None
    assert [(row.rank, row.sharing, row.parameters["rate"]) for row in found.rows] == [(1, 1, 2), (2, 1, 1), (3, 1, 3), (4, 1, 4)]
    contract = current_contract(Benchmark.objects.get().pk)
    assert contract is not None
    places = [place_of(scores_under(contract), contract, Evaluation.objects.get(run__name=f"r{rate}s0")) for rate in (2, 1, 3, 4)]
    assert [place.rank for place in places if place is not None] == [1, 2, 3, 4]


def test_mean_rank_takes_the_rank_by_the_score_from_the_board(laboratory: Laboratory) -> None:
    publish(laboratory, tie_rule="earlier_first")
    for name in ("first", "second"):
        score(laboratory, name, accuracy=0.9, loss=0.1)
    found = board(metrics=("loss",))
    assert [(row.rank, row.ranks and row.ranks.of) for row in found.scores] == [(1, (1, 1)), (2, (2, 1))]


def test_older_scores_are_of_the_metric_that_is_looked_at(laboratory: Laboratory, client: Client) -> None:
    publish(laboratory, metrics=BESIDE)
    score(laboratory, "old", accuracy=0.987, seconds=3.25)
    publish(laboratory, metrics=(*BESIDE, Metric("f1")))
    assert [(row.evaluation.metric, row.evaluation.value) for row in board().older] == [("accuracy", 0.987)]
    assert [(row.evaluation.metric, row.evaluation.value) for row in board(by="seconds").older] == [("seconds", 3.25)]


def test_a_metric_called_like_a_column_of_the_file_is_told_from_it(laboratory: Laboratory, client: Client) -> None:
    score(laboratory, "one", accuracy=0.5, rank=7.0, score=99.0)
    assert laboratory.owner.user is not None
    client.force_login(laboratory.owner.user)
    (row,) = csv_rows(client, "?metric=rank&metric=score")
    assert (row["rank"], row["score"], row["metric rank"], row["metric score"]) == ("1", "0.5", "7.0", "99.0")


def test_a_column_tells_what_was_measured_of_the_same_artifact(laboratory: Laboratory) -> None:
    one, two = (add_artifact(actor=laboratory.owner, run=launch(laboratory), path=name, content=name.encode()) for name in ("a", "b"))
    for at, (value, subject) in enumerate(((0.9, one), (0.8, two), (0.7, None))):
        (run,) = copy_runs(actor=laboratory.owner, pattern=one.run, count=1, kind="evaluate")
        score_runs(actor=laboratory.owner, scores={run: (value, None)}, subject_artifact=subject)
        score_runs(actor=laboratory.owner, scores={run: (float(at), None)}, metric="loss", subject_artifact=one if subject else None)
    for view in ({}, {"order": "mean"}):
        found = board(metrics=("loss",), lower=("loss",), **view)
        assert {row.evaluation.value: row.others[0].value for row in found.scores} == {0.9: 0.0, 0.8: None, 0.7: 2.0}
    assert {row.evaluation.value: row.ranks and row.ranks.of[1] for row in found.scores} == {0.9: 1, 0.8: 3, 0.7: 2}


def test_a_row_over_seeds_tells_what_was_measured_of_the_same_artifact(laboratory: Laboratory) -> None:
    publish(laboratory, over_seeds="mean", metrics=(Metric("seconds", "s", "minimize"),))
    one, two = (
        add_artifact(actor=laboratory.owner, run=launch(laboratory, parameters={"rate": rate}), path="made", content=bytes([rate]))
        for rate in (1, 2)
    )
    for value, subject, beside in ((0.9, one, one), (0.8, two, one), (0.7, None, None)):
        (run,) = copy_runs(actor=laboratory.owner, pattern=one.run, count=1, kind="evaluate", parameters={"rate": 3})
        score_runs(actor=laboratory.owner, scores={run: (value, None)}, subject_artifact=subject)
        score_runs(actor=laboratory.owner, scores={run: (10 * value, None)}, metric="seconds", subject_artifact=beside)
    found = board().over_seeds
    assert found is not None
    assert [(row.score.value, row.others[0].value) for row in found.rows] == [(0.9, 9.0), (0.8, None), (0.7, 7.0)]


def test_files_over_seeds_hold_the_runs_without_a_score_and_the_api_what_the_cards_say(laboratory: Laboratory) -> None:
    score(laboratory, "before", accuracy=0.4)
    publish(laboratory, over_seeds="mean", metrics=(Metric("seconds", "s", "minimize"),))
    for seed in (1, 2):
        score(laboratory, f"a{seed}", rate=1, seed=seed, accuracy=0.8)
    failed = finish(launch(laboratory, name="failed", seed=3, parameters={"rate": 2}), code=1)
    client = signed_in(laboratory.owner)
    page = client.get(PAGE).content.decode()
    first, last = csv_rows(client)
    assert (first["rank"], first["run"], first["state"]) == ("1", "", "")
    assert (last["rank"], last["accuracy, mean"], last["parameters"]) == ("", "", "rate 2")
    assert (last["run"], last["name"], last["state"]) == (failed.public_id, "failed", "failed")
    assert last["why no score"] == "The program ended with exit code 1." and last["why no score"] in page
    answer = client.get(API).json()
    assert [item["run_name"] for item in answer["unscored"]] == ["failed"]
    assert [(item["run_name"], item["contract_version"], item["value"]) for item in answer["older"]] == [("before", 1, 0.4)]
    assert [check["name"] for check in answer["checks"]] == [
        "Measured on a frozen holdout", "The lead is larger than chance", "Runs were isolated",
    ]  # fmt: skip
    assert all(check["line"] in page for check in answer["checks"])
    assert (answer["checks"][1]["verdict"], answer["checks"][1]["line"]) == ("unknown", "It takes two rows of two runs each.")
    assert "the CSV of each version has its own" in page
    assert client.get(f"{API}?contract=1").json()["older"] == []
