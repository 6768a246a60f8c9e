"""Burn: whatever it is cut by, the parts sum to the ledger to the unit; page, API and file say the same."""

import csv
import json
import uuid
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from runs.commands.run import cancel_run
from runs.queries.burn import BY, burn
from tests.factories_resources import join, reserve, settle
from tests.factories_runs import Laboratory, launch, make_laboratory
from tests.factories_seed import caller_for
from tests.workspaces.test_ledger import HOUR, promise
from workspaces.access import Role
from workspaces.commands.external_spend import enter_spend, take_spend_back
from workspaces.models import ExternalSpend, Limit, Unit
from workspaces.standings import standings
from workspaces.units import MICROS


@pytest.fixture
def laboratory() -> Iterator[Laboratory]:
    """One run that was cancelled, one whose row is not here, and money from outside, for a run and for none."""
    made = make_laboratory()
    with made.opened():
        run = launch(made, name="شبكة <b>one</b>", gpu_ms=2 * HOUR)
        cancel_run(actor=made.owner, run=run)
        run_id, starts_at = promise(made.owner, 3, timezone.now())
        settle(actor=made.owner, unit=Unit.GPU_MS, reserved=3 * HOUR, spent=2 * HOUR + 7, run_id=run_id, window_start=starts_at)
        for micros, about in ((5 * MICROS + 1, run), (2 * MICROS, None), (MICROS, None)):
            enter_spend(
                actor=made.owner, amount_micros=micros, currency="EUR", what="judging", spent_at=timezone.now(),
                run_id=about.pk if about else None, run_label=about.name if about else "",
            )  # fmt: skip
        take_spend_back(actor=made.owner, spend=ExternalSpend.objects.get(amount_micros=MICROS), reason="twice")
        yield made


def spent(unit: str) -> int:
    """By the ledger's balance of the week that runs, whether a limit is set or not."""
    found = [one.used for one in standings(now=timezone.now()) if (one.unit, one.window) == (unit, Limit.Window.WEEK)]
    return found[0] if found else 7 * MICROS + 1


@pytest.mark.django_db
@pytest.mark.parametrize("by", BY)
@pytest.mark.parametrize("unit", [Unit.GPU_MS, Unit.API_MICROS])
def test_parts_sum_to_the_ledger_to_the_unit(laboratory: Laboratory, by: str, unit: str) -> None:
    found = burn(unit, by=by)
    assert found.total == sum(part.spent for part in found.parts) == spent(unit)
    now = timezone.now()
    halves = [burn(unit, by=by, until=now), burn(unit, by=by, since=now)]
    assert sum(half.total for half in halves) == found.total


@pytest.mark.django_db
def test_what_belongs_to_no_run_has_a_part_of_its_own_and_estimates_stand_beside(laboratory: Laboratory) -> None:
    parts = {part.label: part for part in burn(Unit.API_MICROS, by="benchmark").parts}
    assert parts["no run"].spent == 2 * MICROS
    (gpu,) = burn(Unit.GPU_MS, by="run").parts
    assert (gpu.spent, gpu.estimate) == (2 * HOUR + 7, 3 * HOUR)


@pytest.mark.django_db
def test_of_a_run_that_was_moved_the_last_promise_stands_beside(laboratory: Laboratory) -> None:
    run_id = uuid.uuid4()
    for hours, spent in ((4, 0), (9, 8)):  # given back, and promised what the other pool counts
        promised: dict[str, Any] = {"actor": laboratory.owner, "unit": Unit.GPU_MS, "run_id": run_id}
        starts_at = reserve(amount=hours * HOUR, now=timezone.now(), **promised)
        settle(reserved=hours * HOUR, spent=spent * HOUR, window_start=starts_at, **promised)
    (both,) = burn(Unit.GPU_MS, by="run").parts  # with the other one that has no row
    assert (both.spent, both.estimate) == ((2 + 8) * HOUR + 7, (3 + 9) * HOUR)


@pytest.mark.django_db
@pytest.mark.parametrize("by", BY)
def test_page_file_and_api_say_the_same(laboratory: Laboratory, by: str) -> None:
    client, slug = Client(), laboratory.workspace.slug
    assert laboratory.owner.user is not None
    client.force_login(laboratory.owner.user)
    query = f"unit=api_micros&by={by}"
    page = client.get(f"/workspaces/{slug}/budget/burn/?{query}")
    assert "7.00 of API spend burnt" in page.content.decode()
    assert "<b>one</b>" not in page.content.decode()
    file = b"".join(client.get(f"/workspaces/{slug}/budget/burn/csv/?{query}"))
    rows = list(csv.DictReader(file.decode().splitlines()))
    answer = (
        caller_for(laboratory, scopes=("budget:read", "benchmark:read", "agent:read", "policy:read", "run:read"))
        .get(f"/api/v1/workspaces/{slug}/ledger/burn?{query}")
        .json()
    )
    assert answer["total"] == sum(int(row["spent"]) for row in rows) == 7 * MICROS + 1
    assert [part["spent"] for part in answer["items"]] == [int(row["spent"]) for row in rows]


@pytest.mark.django_db
@pytest.mark.parametrize("query", ["from=2026-13-01", "from=2026-11-02&to=2026-11-01", "week=never", "by=nothing&unit=moon"])
def test_what_cannot_be_asked_is_answered_with_the_week_that_runs(laboratory: Laboratory, query: str) -> None:
    client = Client()
    assert laboratory.owner.user is not None
    client.force_login(laboratory.owner.user)
    page = client.get(f"/workspaces/{laboratory.workspace.slug}/budget/burn/?{query}")
    assert page.status_code == 200
    assert "In the week from" in page.content.decode()


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["", "csv/"])
def test_a_span_may_reach_to_both_ends_of_the_calendar(laboratory: Laboratory, path: str) -> None:
    client = Client()
    assert laboratory.owner.user is not None
    client.force_login(laboratory.owner.user)
    page = client.get(f"/workspaces/{laboratory.workspace.slug}/budget/burn/{path}?unit=api_micros&from=0001-01-01&to=9999-12-31")
    assert page.status_code == 200


@pytest.mark.django_db
def test_spend_is_entered_by_api_for_a_run_once_a_key(laboratory: Laboratory) -> None:
    path = f"/api/v1/workspaces/{laboratory.workspace.slug}/ledger/spend"
    caller = caller_for(laboratory, join(laboratory.owner, "ida", Role.RESEARCHER), ("budget:read", "budget:write"))
    run = launch(laboratory)
    now = timezone.now()
    body = {"amount_micros": 250_000, "currency": "EUR", "what": "judge", "spent_at": now.isoformat(), "run": run.public_id}

    def post(path: str, body: dict[str, Any], **headers: str) -> Any:
        return caller.post(path, json.dumps(body), **headers)

    made = [post(path, body, Idempotency_Key="one") for _ in range(2)]
    assert [answer.status_code for answer in made] == [201, 201]
    assert made[0].json()["id"] == made[1].json()["id"]
    assert made[0].json()["run_id"] == run.public_id
    assert post(path, {**body, "currency": "USD"}).status_code == 422
    assert post(path, {**body, "spent_at": (now + timedelta(days=2)).isoformat()}).status_code == 422
    assert post(path, {**body, "run": "run_nowhere"}).status_code == 422
    assert post(path, {**body, "extra": 1}).status_code == 422
    back = post(f"{path}/{made[0].json()['id']}/take-back", {"reason": "it was another's"})
    assert back.json()["amount_micros"] == -250_000
    assert post(f"{path}/{made[0].json()['id']}/take-back", {"reason": "again"}).status_code == 409
