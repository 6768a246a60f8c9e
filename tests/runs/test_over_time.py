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
from runs.queries.withdrawal import find_subject
from tests.factories_people import signed_in
from tests.factories_runs import Laboratory, launch, make_laboratory
from tests.factories_submissions import finish
from workspaces.commands.benchmark import publish_contract
from workspaces.models import Benchmark
from workspaces.queries.registry import current_contract

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


def steps() -> list[tuple[str, Any]]:
    found = course_of(current_contract(Benchmark.objects.get().pk))
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
