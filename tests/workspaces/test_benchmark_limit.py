"""A contract that limits runs per person and period: whole or not at all, in its content and hash only where it is set."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.test import Client

from tests.factories import make_workspace, scope
from tests.factories_people import signed_in
from tests.factories_registry import make_benchmark
from workspaces.access import Actor
from workspaces.audit import Refusal
from workspaces.canonical import digest
from workspaces.commands.benchmark import create_benchmark, publish_contract
from workspaces.models import AuditEvent, Benchmark, Contract, EventPayload

pytestmark = pytest.mark.django_db
CONTRACT: dict[str, Any] = {"metric": "accuracy", "direction": "maximize"}
API = "/api/v1/workspaces/lab/benchmarks"


@pytest.fixture
def owner() -> Iterator[Actor]:
    workspace, actor = make_workspace("lab", zone="Europe/Berlin")
    with scope.open_workspace(workspace.pk):
        yield actor


@pytest.fixture
def client(owner: Actor) -> Client:
    return signed_in(owner)


def test_a_contract_without_the_limit_has_the_hash_that_it_always_had(owner: Actor) -> None:
    make_benchmark(owner)
    content = {
        "metric": "accuracy",
        "unit": "",
        "direction": "maximize",
        "holdout": None,
        "wall_seconds": None,
        "terms": "",
        "accepts_no_isolation_reason": "",
    }
    assert Contract.objects.get().content_hash == digest(content)
    limited = publish_contract(actor=owner, benchmark=Benchmark.objects.get(), runs_per_person=5, period="day", **CONTRACT)
    assert limited.content_hash == digest({**content, "runs_per_person": 5, "period": "day"})
    kept = EventPayload.objects.get(event=AuditEvent.objects.latest("sequence")).body["details"]["contract"]
    assert (kept["runs_per_person"], kept["period"]) == (5, "day")


@pytest.mark.parametrize(
    ("limit", "field"),
    [
        ({"runs_per_person": 5}, "period"),
        ({"period": "day"}, "runs_per_person"),
        ({"runs_per_person": 0, "period": "day"}, "runs_per_person"),
        ({"runs_per_person": -1, "period": "day"}, "runs_per_person"),
        ({"runs_per_person": 10**9, "period": "day"}, "runs_per_person"),
        ({"runs_per_person": 5, "period": "year"}, "period"),
    ],
)
def test_half_a_limit_is_refused_by_the_command_and_the_api(owner: Actor, client: Client, limit: dict[str, Any], field: str) -> None:
    benchmark = create_benchmark(actor=owner, slug="speed")
    with pytest.raises(Refusal) as refused:
        publish_contract(actor=owner, benchmark=benchmark, **CONTRACT, **limit)
    assert refused.value.field == field
    answer = client.post(f"{API}/speed/contracts", json.dumps({**CONTRACT, **limit}), content_type="application/json")
    assert answer.status_code == 422
    answer = client.post(API, json.dumps({"slug": "other", "contract": {**CONTRACT, **limit}}), content_type="application/json")
    assert answer.status_code == 422
    assert not Contract.objects.exists()


def test_the_database_keeps_no_number_without_a_period_either(owner: Actor) -> None:
    make_benchmark(owner)
    for half in ({"runs_per_person": 5}, {"runs_per_person": 0, "period": "day"}):
        with pytest.raises(IntegrityError, match="contract_limit_has_period"), transaction.atomic():
            Contract.objects.update(**half)


def test_the_api_takes_and_answers_it(owner: Actor, client: Client) -> None:
    body = {"slug": "speed", "contract": {**CONTRACT, "runs_per_person": 3, "period": "week"}}
    answer = client.post(API, json.dumps(body), content_type="application/json")
    assert answer.status_code == 201, answer.content
    contract = client.get(f"{API}/speed").json()["contract"]
    assert (contract["runs_per_person"], contract["period"]) == (3, "week")
    answer = client.post(f"{API}/speed/contracts", json.dumps(CONTRACT), content_type="application/json")
    assert (answer.json()["runs_per_person"], answer.json()["period"]) == (None, "")


def test_the_form_takes_it_carries_it_over_and_keeps_a_half_one_for_another_look(owner: Actor, client: Client) -> None:
    page = "/workspaces/lab/benchmarks/accuracy/contracts/new/"
    make_benchmark(owner)
    answer = client.post(page, {**CONTRACT, "runs_per_person": "4", "period": ""})
    assert answer.status_code == 409
    assert "Say in which period one person may ask for 4 runs" in answer.content.decode()
    assert 'value="4"' in answer.content.decode()
    assert client.post(page, {**CONTRACT, "runs_per_person": "4", "period": "month"}).status_code == 303
    newest = Contract.objects.latest("version")
    assert (newest.runs_per_person, newest.period) == (4, "month")
    form = client.get(page).content.decode()
    assert 'value="4"' in form
    assert '<option value="month" selected>month</option>' in form
    again = client.post(page, {**CONTRACT, "runs_per_person": "4", "period": "month"})
    assert again.status_code == 409
    assert "says already" in again.content.decode()
