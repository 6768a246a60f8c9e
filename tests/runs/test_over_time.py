"""How the best score came about: who beat all before them, by how much, and what a withdrawal changes of it."""

import csv
import io
import math
from typing import Any

import pytest
from django.test import Client

from runs.commands.withdrawal import undo_withdrawal, withdraw
from runs.models import Run
from runs.queries import over_time
from runs.queries.over_time import course_of
from runs.queries.scoreboard import ranking_of
from runs.queries.withdrawal import find_subject
from tests.factories_people import signed_in
from tests.factories_runs import Laboratory, launch, make_laboratory
from tests.factories_submissions import finish
from workspaces.commands.benchmark import publish_contract
from workspaces.contract_metrics import Metric
from workspaces.models import Benchmark

pytestmark = pytest.mark.django_db
PAGE = "/workspaces/lab/benchmarks/accuracy/over-time/"
VALUES = (("first", 0.5), ("nan", math.nan), ("worse", 0.4), ("second", 0.7), ("tie", 0.7), ("infinite", math.inf), ("third", 0.75))


@pytest.fixture
def laboratory() -> Laboratory:
    made = make_laboratory(at_once=50, slots=16, weekly_gpu_hours=10_000)
    with made.opened():
        for name, value in VALUES:
            finish(launch(made, name=name), value)
    return made


def steps(by: str = "", version: int = 0) -> list[tuple[str, Any]]:
    found = course_of(ranking_of(Benchmark.objects.get(), by=by, version=version))
    return [(step.score.evaluation.run.name, step.by and round(step.by, 9)) for step in found.steps]


def test_only_what_beat_all_before_it_is_a_step(laboratory: Laboratory) -> None:
    with laboratory.opened():
        assert steps() == [("third", 0.05), ("second", 0.2), ("first", None)]


def test_less_is_better_where_the_contract_says_so(laboratory: Laboratory) -> None:
    with laboratory.opened():
        publish_contract(actor=laboratory.owner, benchmark=Benchmark.objects.get(), metric="accuracy", direction="minimize")
        assert steps() == [], "scores of another version are no steps of this one"
        for name, value in (("a", 3.0), ("b", 4.0), ("c", 1.0)):
            finish(launch(laboratory, name=name), value)
        assert steps() == [("c", 2.0), ("a", None)]
        assert steps(version=1) == [("third", 0.05), ("second", 0.2), ("first", None)], "by the rules of that version"


def test_what_was_withdrawn_set_no_record_until_it_is_undone(laboratory: Laboratory) -> None:
    with laboratory.opened():
        before = steps()
        subject, label = find_subject("run", Run.objects.get(name="second").public_id)
        withdrawal = withdraw(actor=laboratory.owner, subject=subject, label=label, reason="wrong data")
        assert steps() == [("third", 0.05), ("tie", 0.2), ("first", None)]
        undo_withdrawal(actor=laboratory.owner, withdrawal=withdrawal, reason="it was right")
        assert steps() == before


def test_page_file_and_api_say_the_same(laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch) -> None:
    client = signed_in(laboratory.owner)
    page = client.get(PAGE).content.decode()
    assert "The best score has been beaten 2 times, last by third with 0.7500" in page and "minutes before now" in page
    rows = list(csv.DictReader(io.StringIO(b"".join(client.get(f"{PAGE}csv/")).decode())))
    api, items, cursor = "/api/v1/workspaces/lab/benchmarks/accuracy/over-time", list[dict[str, Any]](), ""
    for _ in range(3):
        told = client.get(api, {"cursor": cursor, "limit": "1"}).json()
        items, cursor = items + told["items"], told["next"]
    assert cursor is None
    assert [(row["name"], row["score"], row["better by"]) for row in rows] == [
        (item["run_name"], str(item["value"]), "" if item["by"] is None else str(item["by"])) for item in items
    ]
    assert len(rows) == 3
    monkeypatch.setattr(over_time, "SHOWN", 2)
    assert "newest 2 of 3" in client.get(PAGE).content.decode()
    assert Client().get(PAGE).status_code == 302


def test_the_course_is_that_of_the_board_that_is_looked_at(laboratory: Laboratory) -> None:
    with laboratory.opened():
        seconds = Metric("seconds", "s", "minimize")
        benchmark = Benchmark.objects.get()
        publish_contract(
            actor=laboratory.owner, benchmark=benchmark, metric="accuracy", direction="maximize", metrics=(seconds,), over_seeds="mean"
        )
        for name, value, took in (("a", 0.9, 30.0), ("b", 0.8, 20.0), ("c", 0.7, 25.0)):
            finish(launch(laboratory, name=name), value, others={"seconds": took})
        assert (steps(), steps(by="seconds")) == ([("a", None)], [("b", 10.0), ("a", None)])
    client = signed_in(laboratory.owner)
    board = client.get("/workspaces/lab/benchmarks/accuracy/?by=seconds").content.decode()
    assert f'href="{PAGE}?by=seconds"' in board
    page = client.get(f"{PAGE}?by=seconds").content.decode()
    note = "These are single scores, and not the ranking of the board, which is by the mean over seeds."
    assert note in page and "last by b with 20 s" in page and "lower is better" in page
    assert f'href="{PAGE}csv/?by=seconds"' in page and 'href="/workspaces/lab/benchmarks/accuracy/?by=seconds"' in page
    rows = list(csv.DictReader(io.StringIO(b"".join(client.get(f"{PAGE}csv/?by=seconds")).decode())))
    assert [(row["name"], row["metric"], row["score"]) for row in rows] == [("b", "seconds", "20.0"), ("a", "seconds", "30.0")]
    api = "/api/v1/workspaces/lab/benchmarks/accuracy/over-time"
    told = client.get(api, {"by": "seconds"}).json()
    assert (told["metric"], told["direction"], told["note"]) == ("seconds", "minimize", note)
    assert [(item["run_name"], item["by"]) for item in told["items"]] == [("b", 10.0), ("a", None)]

    past = "?contract=1"
    assert f'href="{PAGE}{past}"' in client.get(f"/workspaces/lab/benchmarks/accuracy/{past}").content.decode()
    page = client.get(f"{PAGE}{past}").content.decode()
    assert "which holds no more" in page and "third with 0.75" in page and note not in page
    told = client.get(api, {"contract": "1"}).json()
    assert (told["contract_version"], told["note"], [item["run_name"] for item in told["items"]]) == (1, "", ["third", "second", "first"])
