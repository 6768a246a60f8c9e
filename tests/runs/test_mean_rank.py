"""Mean and median rank over the metrics that a scoreboard shows (feature 35): table E's rules for ties and for what is missing, in each column."""

import itertools
import json
import math
import statistics
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from runs.models import Evaluation
from runs.queries import scoreboard as boards
from runs.queries.scoreboard import scores_under
from tests.factories import make_member
from tests.factories_pages import add_artifact, add_check, copy_runs, score_runs
from tests.factories_people import signed_in
from tests.factories_runs import Laboratory, launch
from tests.runs.slow_boards import ranked, with_ranks
from tests.runs.test_scoreboard_views import PAGE, board, client, file_of, laboratory, score, text_of
from workspaces.access import Role
from workspaces.commands.benchmark import publish_contract
from workspaces.models import Benchmark, Contract
from workspaces.queries.registry import current_contract

__all__ = ["client", "laboratory"]
pytestmark = pytest.mark.django_db
API = "/api/v1/workspaces/lab/benchmarks/accuracy/scoreboard"


def ranks(**view: Any) -> dict[str, tuple[int, ...] | None]:
    return {row.evaluation.run.name: row.ranks.of if row.ranks else None for row in board(**view).scores}


def test_each_metric_ranks_by_its_own_direction_and_the_means_order_the_board(laboratory: Laboratory, client: Client) -> None:
    for name, value, loss, f1 in (("a", 0.9, 3.0, 0.1), ("b", 0.8, 1.0, 0.9), ("c", 0.7, 2.0, 0.2)):
        score(laboratory, name, value, others={"loss": loss, "f1": f1})
    view = {"metrics": ("f1", "loss"), "lower": ("loss",)}
    assert ranks(**view) == {"a": (1, 3, 3), "b": (2, 1, 1), "c": (3, 2, 2)}
    assert ranks(metrics=("f1", "loss"))["a"] == (1, 3, 1), "more is better unless it is said"
    by_score, by_mean, by_median = (board(**view, order=order) for order in ("score", "mean", "median"))
    assert [row.evaluation.run.name for row in by_score.scores] == ["a", "b", "c"]
    assert [row.evaluation.run.name for row in by_mean.scores] == ["b", "a", "c"]
    assert [row.evaluation.run.name for row in by_median.scores] == ["b", "c", "a"]
    assert [(row.rank, row.ranks and row.ranks.median) for row in by_median.scores] == [(2, 1), (3, 2), (1, 3)]
    assert by_mean.leader is not None
    assert by_mean.leader.evaluation.run.name == "a", "who leads the benchmark is who has the best score, in whatever order it is shown"

    query = "?metric=f1&metric=loss&lower=loss&order=median"
    page = text_of(client, f"{PAGE}{query}")
    assert [page.index(f"<bdi>{name}</bdi></a> </th>") for name in "bca"] == sorted(
        page.index(f"<bdi>{name}</bdi></a> </th>") for name in "abc"
    )
    assert '<td class="figure">1.33</td> <td class="figure strong">1</td>' in page
    assert 'scope="col" aria-sort="ascending">Median rank' in page
    assert page.count("aria-sort=") == 1
    rows = file_of(client, query)
    assert [(row["name"], row["f1, rank"], row["mean rank"], row["median rank"]) for row in rows] == [
        ("b", "1", "1.3333333333333333", "1"),
        ("c", "2", "2.3333333333333335", "2"),
        ("a", "3", "2.3333333333333335", "3"),
    ]
    answer = client.get(f"{API}{query}").json()
    assert [(item["run_name"], item["rank"], item["median_rank"]) for item in answer["items"]] == [("b", 2, 1), ("c", 3, 2), ("a", 1, 3)]
    assert answer["items"][0]["metrics"][1] == {"metric": "loss", "value": 1.0, "standard_error": None, "rank": 1}
    assert (answer["total"], answer["next"], answer["metrics_reported"]) == (3, None, ["f1", "loss"])


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
@pytest.mark.parametrize("lower", [(), ("m",)])
def test_what_is_missing_stands_behind_all_that_is_there_in_either_direction(
    laboratory: Laboratory, client: Client, direction: str, lower: tuple[str, ...]
) -> None:
    if direction == "minimize":
        publish_contract(actor=laboratory.owner, benchmark=Benchmark.objects.get(), metric="accuracy", direction=direction)
    for name, value, other in (
        ("silent", 0.9, None), ("nan", 0.8, math.nan), ("plus", 0.7, math.inf), ("minus", 0.6, -math.inf), ("high", 0.5, 1e300),
        ("low", 0.4, -1e300), ("no-score", math.nan, 0.0),
    ):  # fmt: skip
        score(laboratory, name, value, others={} if other is None else {"m": other})
    found = ranks(metrics=("m",), lower=lower)
    assert {name: of and of[1] for name, of in found.items()} == {
        "silent": 3, "nan": 3, "plus": 3, "minus": 3, "high": 2 if lower else 1, "low": 1 if lower else 2, "no-score": None,
    }  # fmt: skip
    for order in ("mean", "median"):
        shown = board(metrics=("m",), lower=lower, order=order).scores
        assert (shown[-1].evaluation.run.name, shown[-1].rank) == ("no-score", None)
    rows = file_of(client, "?metric=m")
    assert [row["mean rank"] for row in rows if row["name"] == "no-score"] == [""]
    items = client.get(f"{API}?metric=m").json()["items"]
    assert [(item["rank"], item["mean_rank"], item["median_rank"]) for item in items][-1] == (None, None, None)
    assert json.dumps(items, allow_nan=False)


def test_equal_values_share_a_rank_and_equal_means_stand_by_age_over_pages(
    laboratory: Laboratory, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(boards, "PAGE", 2)
    for name, value, other in (("a", 0.5, 0.5), ("b", 0.9, 0.1), ("c", 0.1, 0.9), ("d", 0.5, 0.5), ("e", 0.5, 0.5)):
        score(laboratory, name, value, others={"m": other})
    whole = [row for start in (0, 2, 4) for row in board(metrics=("m",), order="mean", start=start).scores]
    assert [(row.evaluation.run.name, row.ranks and row.ranks.of) for row in whole] == [
        ("a", (2, 2)), ("d", (2, 2)), ("e", (2, 2)), ("b", (1, 5)), ("c", (5, 1)),
    ]  # fmt: skip
    assert 'href="?metric=m&amp;order=mean&amp;from=2"' in text_of(client, f"{PAGE}?metric=m&order=mean")
    seen, cursor = [], ""
    while cursor is not None:
        answer = client.get(f"{API}?metric=m&order=mean&limit=2&cursor={cursor}").json()
        seen += [item["run_name"] for item in answer["items"]]
        cursor = answer["next"]
    assert seen == ["a", "d", "e", "b", "c"]


def test_ranks_are_among_the_best_of_each_agent_where_these_are_shown(laboratory: Laboratory) -> None:
    for name, value in (("a", 0.5), ("b", 0.9), ("c", 0.7)):
        score(laboratory, name, value, others={"m": -value})
    assert ranks(is_best=True, metrics=("m",)) == {"b": (1, 1)}


@pytest.mark.parametrize("columns", range(1, 5))
def test_the_median_of_up_to_five_is_the_median(laboratory: Laboratory, columns: int) -> None:
    metrics = tuple(f"m{number}" for number in range(columns))
    orders = itertools.islice(itertools.cycle(itertools.permutations(range(6))), 0, 6 * 97, 97)
    for number, order in enumerate(orders):
        score(laboratory, f"run-{number}", float(number), others={metric: float(order[at]) for at, metric in enumerate(metrics)})
    found = [row.ranks for row in board(metrics=metrics, order="median").scores]
    assert len(found) == Evaluation.objects.filter(metric="accuracy").count() == 6
    medians = [statistics.median(ranks.of) for ranks in found if ranks]
    assert medians == sorted(medians)
    assert len({ranks.of for ranks in found if ranks}) == 6


VALUES = (0.5, 0.5, 0.7, math.nan, -0.0, 0.0, math.inf, 0.7, -math.inf, 1e300, 5e-324, -1e300, 0.5)


def fill(laboratory: Laboratory) -> None:
    """Ties, what is no number, what is missing, columns of another artifact than the score's, what a check has measured, and times that are equal."""
    runs = copy_runs(actor=laboratory.owner, pattern=launch(laboratory), count=39, contract_id=newest().pk)
    made = [add_artifact(actor=laboratory.owner, run=run, path="a", content=b"a") for run in runs[:12]]
    moment = timezone.now()
    for metric, step in (("accuracy", 1), ("m", 3), ("n", 7), ("o", 5), ("p", 11)):
        for place, run in enumerate(runs):
            if metric != "accuracy" and (place * step) % 4 == 1:
                continue
            subject = None
            if place < len(made):
                subject = {"accuracy": made[place] if place % 5 else None, "m": made[place], "n": None}.get(metric, made[place - 1])
            value = VALUES[(place * step) % len(VALUES)]
            score_runs(actor=laboratory.owner, scores={run: (value, None)}, metric=metric, subject_artifact=subject, created_at=moment)
    add_check(actor=laboratory.owner, evaluation=Evaluation.objects.filter(run=runs[20], metric="accuracy").get(), words="moved")


def newest() -> Contract:
    found = current_contract(Benchmark.objects.get().pk)
    assert found is not None
    return found


@pytest.mark.parametrize("tie_rule", Contract.TieRule.values)
@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_pages_cut_anywhere_are_those_of_the_whole_board_ranked_row_by_row(laboratory: Laboratory, direction: str, tie_rule: str) -> None:
    publish_contract(
        actor=laboratory.owner, benchmark=Benchmark.objects.get(), metric="accuracy", direction=direction, tie_rule=tie_rule, terms="again"
    )
    fill(laboratory)
    contract, ordinal = newest(), tie_rule == Contract.TieRule.EARLIER_FIRST
    everything = ranked(scores_under(contract), direction, ordinal=ordinal)
    for metrics, lower in ((("m",), ()), (("m", "n"), ("n",)), (("m", "n", "o"), ("m",)), (("m", "n", "o", "p"), ("o", "p"))):
        rows = list(with_ranks(everything, contract, contract.primary, metrics, lower))
        assert len(rows) == 38
        of = {row.pk: tuple(getattr(row, f"rank_{at}") for at in range(len(metrics) + 1)) for row in rows}
        for order, middle in (("score", None), ("mean", statistics.mean), ("median", statistics.median)):
            if middle is not None:
                rows.sort(key=lambda row: (getattr(row, "is_unranked"), middle(of[row.pk]), row.created_at, row.pk))
            expected = [
                (row.pk, getattr(row, "place"), getattr(row, "sharing"), of[row.pk])
                if not getattr(row, "is_unranked")
                else (row.pk, None, 1, None)
                for row in rows
            ]
            for start, size in ((0, 50), (0, 7), (7, 9), (20, 11), (29, 3), (30, 30), (38, 5)):
                view = boards.BoardView(metrics=metrics, lower=lower, order=order, start=start)
                shown = boards.scoreboard(Benchmark.objects.get(), view, size=size).scores
                found = [(row.evaluation.pk, row.rank, row.sharing, row.ranks and row.ranks.of) for row in shown]
                assert found == expected[start : start + size], (metrics, order, start, size)


def test_without_columns_there_is_no_mean_rank_and_nothing_to_order_by(laboratory: Laboratory, client: Client) -> None:
    score(laboratory, "a", 0.5, others={"m": 1.0})
    assert board(order="mean").view.order == "score"
    assert "Mean rank" not in text_of(client, f"{PAGE}?order=mean&lower=m")
    assert "mean rank" not in file_of(client)[0]
    assert client.get(API).json()["items"][0]["mean_rank"] is None


def test_a_reader_turns_a_metric_and_is_told_which_way_is_better(laboratory: Laboratory, client: Client) -> None:
    score(laboratory, "a", 0.5, others={"<m>": 1.0})
    page = text_of(client, f"{PAGE}?metric=%3Cm%3E")
    assert 'href="?metric=%3Cm%3E&amp;lower=%3Cm%3E" title="Higher is better; read it as lower is better"' in page
    assert "Lower is better; read it as higher is better" in text_of(client, f"{PAGE}?metric=%3Cm%3E&lower=%3Cm%3E")
    assert "<m>" not in page


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("order=best", "order"), ("rows=worst", "rows"), ("cursor=x", "cursor"), ("cursor=-1", "cursor"), ("limit=501", "limit"),
        ("metric=a&metric=b&metric=c&metric=d&metric=e", "metric"), ("order=mean&order=score", "order"), ("size=1", "size"),
    ],
)  # fmt: skip
def test_the_api_says_what_it_does_not_take(laboratory: Laboratory, client: Client, query: str, field: str) -> None:
    answer = client.get(f"{API}?{query}")
    assert (answer.status_code, answer.json()["errors"][0]["field"].split(".")[0]) == (422, field)


def test_a_viewer_reads_the_board_by_api_and_a_stranger_finds_none(laboratory: Laboratory) -> None:
    score(laboratory, "only", 0.5)
    viewer = make_member(laboratory.workspace, Role.VIEWER)
    assert [item["run_name"] for item in signed_in(viewer).get(API).json()["items"]] == ["only"]
    assert Client().get(API).status_code == 401
