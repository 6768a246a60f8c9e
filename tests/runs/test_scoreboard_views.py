"""What a reader chooses of the scoreboard and what they are told of it: best of each agent, other metrics, pages, the file, what has no score."""

import csv
import io
import math
import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client

from runs.charts import intervals
from runs.commands.run import cancel_run
from runs.commands.withdrawal import withdraw
from runs.models import Run
from runs.queries import scoreboard as boards
from runs.queries.scoreboard import BoardView, Scoreboard, scoreboard, scores_under
from runs.queries.withdrawal import find_subject
from tests.factories import make_member
from tests.factories_people import signed_in
from tests.factories_registry import make_agent_version
from tests.factories_runs import Laboratory, launch, make_laboratory
from tests.factories_submissions import finish
from workspaces.access import Role
from workspaces.commands.benchmark import publish_contract
from workspaces.models import Benchmark, Contract

pytestmark = pytest.mark.django_db
PAGE = "/workspaces/lab/benchmarks/accuracy/"


@pytest.fixture
def laboratory() -> Iterator[Laboratory]:
    made = make_laboratory(at_once=50, slots=16, weekly_gpu_hours=10_000)
    with made.opened():
        yield made


@pytest.fixture
def client(laboratory: Laboratory) -> Client:
    return signed_in(laboratory.owner)


def score(
    laboratory: Laboratory, name: str, value: float | None, error: float | None = None, *, agent: str = "worker", **ends: Any
) -> None:
    finish(launch(laboratory, name=name, agent=agent), value, error=error, **ends)


def board(**view: Any) -> Scoreboard:
    return scoreboard(Benchmark.objects.get(), BoardView(**view))


def names(found: Scoreboard) -> list[tuple[int | None, str]]:
    return [(row.rank, row.evaluation.run.name) for row in found.scores]


def text_of(client: Client, path: str = PAGE) -> str:
    answer = client.get(path)
    assert answer.status_code == 200
    return re.sub(r"\s+", " ", answer.content.decode())


def file_of(client: Client, query: str = "") -> list[dict[str, str]]:
    answer = client.get(f"{PAGE}csv/{query}")
    assert answer.status_code == 200
    assert answer["Content-Type"].startswith("text/csv")
    return list(csv.DictReader(io.StringIO(b"".join(answer).decode())))


# --- Order (E1 to E3) -----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_nothing_without_a_number_stands_above_one_in_either_direction(laboratory: Laboratory, client: Client, direction: str) -> None:
    if direction == "minimize":
        publish_contract(actor=laboratory.owner, benchmark=Benchmark.objects.get(), metric="accuracy", direction=direction)
    for name, value in (("nan", math.nan), ("plus", math.inf), ("minus", -math.inf), ("low", -1e300), ("high", 1e300)):
        score(laboratory, name, value)
    score(laboratory, "failed", 0.5, code=1)
    score(laboratory, "silent", None)
    cancel_run(actor=laboratory.owner, run=launch(laboratory, name="cancelled"))
    launch(laboratory, name="waiting")
    found = board()
    best, worst = ("high", "low") if direction == "maximize" else ("low", "high")
    assert names(found)[:2] == [(1, best), (2, worst)]
    assert {rank for rank, _ in names(found)[2:]} == {None}
    assert {name for _, name in names(found)[2:]} == {"nan", "plus", "minus"}
    assert (found.total, found.ranked) == (5, 2)
    assert {row.run.name for row in found.unscored.rows} == {"failed", "silent", "cancelled"}, "one that waits may still be scored"
    page = text_of(client)
    assert f"{best} leads with" in page
    assert page.index("<bdi>plus</bdi>") > page.index(f"<bdi>{worst}</bdi>")
    assert "3 runs without a score" in page
    assert "The program ended with exit code 1." in page
    assert "It ended without reporting accuracy." in page
    assert page.index("3 runs without a score") > page.index("<bdi>nan</bdi>")
    rows = file_of(client)
    assert [row["rank"] for row in rows] == ["1", "2", *[""] * 6]
    assert {row["score"] for row in rows[2:5]} == {"NaN", "Infinity", "'-Infinity"}
    assert {row["why no rank"] for row in rows[5:]} == {row.reason for row in found.unscored.rows}


def test_the_api_says_what_the_file_says(laboratory: Laboratory, client: Client) -> None:
    for name, value, error in (("best", 0.9, 0.01), ("bare", 0.8, None), ("edge", 1e308, 1e308), ("nan", math.nan, 0.1)):
        score(laboratory, name, value, error)
    score(laboratory, "failed", 0.5, code=1)
    score(laboratory, "gone", 0.95)
    subject, label = find_subject("run", Run.objects.get(name="gone").public_id)
    withdraw(actor=laboratory.owner, subject=subject, label=label, reason="wrong data")
    answer = client.get("/api/v1/workspaces/lab/benchmarks/accuracy/scoreboard").json()
    cells = {"rank": "rank", "run_id": "run", "run_name": "name", "value": "score", "low": "95 % from", "high": "95 % to",
             "isolation": "isolation", "status": "state"}  # fmt: skip
    told = [{column: str("" if item[key] is None else item[key]) for key, column in cells.items()} for item in answer["items"]]
    unscored = {"run_id": "run", "run_name": "name", "status": "state", "reason": "why no rank", "isolation": "isolation", "agent": "agent"}
    without = [{column: item[key] for key, column in unscored.items()} for item in answer["unscored"]]
    rows = file_of(client)
    assert told == [{column: row[column].lstrip("'") for column in cells.values()} for row in rows[:4]]
    assert without == [{column: row[column] for column in unscored.values()} for row in rows[4:]]
    assert {row["name"] for row in rows[4:]} == {"failed", "gone"}
    assert (answer["withdrawn"], answer["unscored_total"], answer["unscored_has_older"]) == (1, 2, False)


def test_what_is_displayed_alike_is_ordered_by_the_whole_value(laboratory: Laboratory, client: Client) -> None:
    score(laboratory, "second", 0.90000001, 0.1)
    score(laboratory, "first", 0.90000002, 0.1)
    found = board()
    assert names(found) == [(1, "first"), (2, "second")]
    assert found.tied == 1
    assert text_of(client).count("0.90 ± 0.10</a>") == 2


def test_ties_share_a_rank_and_say_so_over_pages(laboratory: Laboratory, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boards, "PAGE", 2)
    for name, value in (("a", 0.5), ("b", 0.9), ("c", 0.5), ("d", 0.5), ("e", 0.1)):
        score(laboratory, name, value)
    whole = [(1, "b"), (2, "a"), (2, "c"), (2, "d"), (5, "e")]
    assert [entry for start in (0, 2, 4) for entry in names(board(start=start))] == whole
    assert [row.sharing for start in (0, 2, 4) for row in board(start=start).scores] == [1, 3, 3, 3, 1]
    last = board(start=4)
    assert last.leader is not None
    assert last.lead == pytest.approx(0.4)
    assert (last.leader.evaluation.run.name, last.tied) == ("b", 1), "the answer is that of the whole board"
    page = text_of(client)
    assert "tie of 3" in page
    assert 'href="?from=2"' in page
    assert "b leads with" in text_of(client, f"{PAGE}?from=4")
    assert [row["sharing the rank"] for row in file_of(client, "?from=2")] == ["3", "3"]


def test_the_follower_is_found_behind_a_lead_that_fills_the_page(laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boards, "PAGE", 2)
    for name, value in (("a", 0.9), ("b", 0.9), ("c", 0.9), ("d", 0.7)):
        score(laboratory, name, value)
    found = board()
    assert found.tied == 3
    assert found.lead == pytest.approx(0.2)
    assert found.follower is not None
    assert (found.follower.rank, found.follower.evaluation.run.name) == (4, "d")


@pytest.mark.parametrize("query", ["?from=-1", "?from=x", "?from=99999999999999999999", "?rows=worst", "?metric=nothing&metric="])
def test_an_address_that_means_nothing_shows_the_board(laboratory: Laboratory, client: Client, query: str) -> None:
    score(laboratory, "only", 0.5)
    assert "<bdi>only</bdi>" in text_of(client, f"{PAGE}{query}")


# --- What is chosen -------------------------------------------------------------------------------------------------------------------------


def test_best_of_each_agent_ranks_agents(laboratory: Laboratory, client: Client) -> None:
    make_agent_version(laboratory.owner, "probe", wall_seconds=60)
    make_agent_version(laboratory.owner, "lost", wall_seconds=60)
    for name, value, agent in (
        ("w1", 0.6, "worker"),
        ("w2", 0.9, "worker"),
        ("p1", 0.8, "probe"),
        ("p2", math.nan, "probe"),
        ("l1", math.nan, "lost"),
    ):
        score(laboratory, name, value, agent=agent)
    assert names(board()) == [(1, "w2"), (2, "p1"), (3, "w1"), (None, "p2"), (None, "l1")]
    found = board(is_best=True)
    assert names(found) == [(1, "w2"), (2, "p1"), (None, "l1")]
    assert found.total == 3
    assert found.lead == pytest.approx(0.1)
    page = text_of(client, f"{PAGE}?rows=best")
    assert "<bdi>w1</bdi>" not in page
    assert '<a class="chip" href="?rows=best" aria-current="true">Best of each agent</a>' in page
    assert [row["name"] for row in file_of(client, "?rows=best")] == ["w2", "p1", "l1"]


def test_one_agent_alone_leads_agents_and_a_page_past_the_end_says_so(laboratory: Laboratory, client: Client) -> None:
    score(laboratory, "w1", 0.6)
    score(laboratory, "w2", 0.9)
    assert "the only agent with a score" in text_of(client, f"{PAGE}?rows=best")
    past = text_of(client, f"{PAGE}?from=50")
    assert "The board has 2 scores, and none stands here." in past
    assert "51 to 50" not in past


def test_of_a_board_that_is_withdrawn_nobody_says_that_nothing_was_scored(laboratory: Laboratory, client: Client) -> None:
    score(laboratory, "one", 0.6)
    score(laboratory, "two", 0.9)
    contract = Contract.objects.get()
    for left, name in ((1, "one"), (0, "two")):
        subject, label = find_subject("run", Run.objects.get(name=name).public_id)
        withdraw(actor=laboratory.owner, subject=subject, label=label, reason="wrong data")
        found = board()
        assert (found.total, found.ranked, found.withdrawn) == (left, left, 2 - left)
        assert found.total == scores_under(contract).count(), "counted from both ends"
    page = text_of(client)
    assert "rests on what was withdrawn" in page
    assert "Nothing has been scored" not in page


def test_other_metrics_are_columns_of_the_address_and_bounded(laboratory: Laboratory, client: Client) -> None:
    score(laboratory, "rich", 0.9, others={f"m{index}": float(index) for index in range(30)} | {"<b>": 7.25})
    score(laboratory, "plain", 0.8, others={"m1": math.nan})
    assert board().offered[:2] == ["<b>", "m0"]
    assert len(board().offered) == boards.MOST_OFFERED
    found = board(metrics=("m1", "nobody", "<b>"))
    assert found.view.metrics == ("<b>", "m1")
    assert [other.value for other in found.scores[0].others] == [7.25, 1.0]
    assert found.scores[1].others[0].value is None
    assert len(board(metrics=tuple(f"m{index}" for index in range(9))).view.metrics) == boards.MOST_COLUMNS
    assert board(metrics=("m9",)).view.metrics == ("m9",), "not among the first, but named"
    page = text_of(client, f"{PAGE}?metric=m1&metric=%3Cb%3E")
    assert "<b>" not in page
    assert '<td class="figure">7.250</td><td class="figure">1</td>' in page
    assert '<td class="figure">—</td><td class="figure">NaN</td>' in page, "missing is not zero"
    assert "metric=" not in text_of(client).split("CSV</a>")[0].rsplit("<a", 1)[1]
    rows = file_of(client, "?metric=m1")
    assert [row["m1"] for row in rows] == ["1.0", "NaN"]


def test_scores_of_other_metrics_are_no_scores_of_an_older_contract(laboratory: Laboratory) -> None:
    score(laboratory, "old", 0.9, others={"loss": 3.0})
    publish_contract(actor=laboratory.owner, benchmark=Benchmark.objects.get(), metric="loss", direction="minimize")
    found = board()
    assert [(row.evaluation.run.name, row.evaluation.metric) for row in found.older] == [("old", "accuracy")]
    assert (found.scores, found.offered, found.unscored.total) == ([], [], 0)


def test_who_may_see_no_scores_gets_no_file(laboratory: Laboratory, client: Client) -> None:
    viewer = make_member(laboratory.workspace, Role.VIEWER)
    score(laboratory, "only", 0.5)
    assert signed_in(viewer).get(f"{PAGE}csv/").status_code == 200
    assert Client().get(f"{PAGE}csv/").status_code == 302


# --- Direction, errors, limits in words -----------------------------------------------------------------------------------------------------


def test_direction_is_visible_and_errors_are_drawn(laboratory: Laboratory, client: Client) -> None:
    publish_contract(actor=laboratory.owner, benchmark=Benchmark.objects.get(), metric="seconds", direction="minimize", unit="s")
    score(laboratory, "fast", 1.0, 0.1, metric="seconds")
    score(laboratory, "slow", 2.0, metric="seconds")
    score(laboratory, "never", math.nan, 0.2, metric="seconds")
    page = text_of(client)
    assert 'aria-sort="ascending"' in page
    assert "lower is better" in page
    assert "Better is to the left." in page
    assert "the 95 % interval of ± 1.96 standard errors" in page
    assert (page.count('class="interval-far"'), page.count('class="interval-value"')) == (1, 2)
    assert "style=" not in page.split("<main")[1]
    row = file_of(client)[0]
    assert [float(row["95 % from"]), float(row["95 % to"])] == pytest.approx([1 - 0.196, 1 + 0.196], abs=1e-4)


def test_the_contract_and_what_is_left_stand_in_words(laboratory: Laboratory, client: Client) -> None:
    terms: dict[str, Any] = {"metric": "accuracy", "direction": "maximize", "runs_per_person": 2, "period": "day"}
    publish_contract(actor=laboratory.owner, benchmark=Benchmark.objects.get(), **terms)
    page = text_of(client)
    assert "At most 2 per person and day, cut at midnight Europe/Berlin" in page
    assert re.search(r"you have 2 of 2 runs left until \w+day 00:00 Europe/Berlin", page)
    score(laboratory, "one", 0.5)
    launch(laboratory, name="two")
    assert re.search(r"you have no run left of 2; the next is allowed from \w+day 00:00 Europe/Berlin", text_of(client))
    viewer = make_member(laboratory.workspace, Role.VIEWER)
    assert "you have" not in text_of(signed_in(viewer)), "who launches nothing has nothing left"


# --- Intervals ------------------------------------------------------------------------------------------------------------------------------


def place(text: str) -> float:
    return float(text.removesuffix("%"))


def test_intervals_stand_on_one_axis() -> None:
    drawn = intervals([(0.9, 0.02), (0.8, None), (math.nan, 0.1), (math.inf, None)])
    first, second = drawn.rows[:2]
    assert first is not None and second is not None
    assert drawn.rows[2:] == (None, None)
    assert place(second.at) < place(first.at)
    assert first.near is not None
    assert first.far is not None
    assert (second.near, second.far) == (None, None)
    near, far = (place(end[1]) - place(end[0]) for end in (first.near, first.far))
    assert far / near == pytest.approx(1.96, abs=0.01)
    assert place(first.far[0]) < place(first.at) < place(first.far[1])


def test_one_far_off_does_not_press_the_others_together_and_the_leader_is_always_on_the_axis() -> None:
    close = [(0.8 + index / 100, 0.01) for index in range(10)]
    drawn = intervals([(5.0, 0.1), *close, (-1e9, 1.0)])
    assert drawn.rows[0] is not None
    assert drawn.rows[-1] is not None
    assert (drawn.rows[0].beyond, drawn.rows[-1].beyond) == ("", "low")


@pytest.mark.parametrize(
    "values",
    [
        [],
        [(math.nan, None)],
        [(0.5, None)],
        [(0.5, 0.0), (0.5, -1.0), (0.5, math.nan), (0.5, math.inf)],
        [(1.7e308, 1e308), (-1.7e308, 1.0)],
        [(5e-324, 5e-324), (0.0, None)],
        [(0.9, 1e300), (0.8, 0.1)],
        [(0.5, None)] * 200,
    ],
)
def test_any_numbers_are_drawn_within_the_column(values: list[tuple[float, float | None]]) -> None:
    drawn = intervals(values)
    assert len(drawn.rows) == len(values)
    shown = [row for row in drawn.rows if row is not None]
    places = [place(text) for row in shown for text in (row.at, *(row.near or ()), *(row.far or ()))]
    assert all(0 <= at <= 100 for at in [*places, *(place(tick.at) for tick in drawn.ticks)])


def test_a_version_that_holds_no_more_has_its_own_board(laboratory: Laboratory, client: Client) -> None:
    score(laboratory, "low", 0.2)
    score(laboratory, "high", 0.9)
    publish_contract(actor=laboratory.owner, benchmark=Benchmark.objects.get(), metric="accuracy", direction="minimize")
    score(laboratory, "new", 0.5)
    assert names(board()) == [(1, "new")]
    assert [row.evaluation.run.name for row in board().older] == ["high", "low"]
    past = board(version=1)
    assert (names(past), past.is_past, past.older) == ([(1, "high"), (2, "low")], True, []), (
        "by its own direction, and no score of another version"
    )
    for version in (0, 2, 3):
        assert (names(board(version=version)), board(version=version).is_past) == ([(1, "new")], False)
    page = text_of(client, f"{PAGE}?contract=1")
    assert "high leads with" in page and "contract version 1, <strong>which holds no more</strong>" in page
    assert "over-time/?contract=1" in page and 'over-time/?"' in text_of(client), "the course is of the contract that is looked at"
    assert '<a href="?">Version 2</a>' in page and "Version 1, shown here" in page
    assert 'href="?contract=1">Version 1</a>' in text_of(client)
    assert [(row["name"], row["contract"]) for row in file_of(client, "?contract=1")] == [("high", "1"), ("low", "1")]
    told = client.get("/api/v1/workspaces/lab/benchmarks/accuracy/scoreboard", {"contract": 1}).json()
    assert (told["contract_version"], [item["run_name"] for item in told["items"]]) == (1, ["high", "low"])
