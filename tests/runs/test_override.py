"""Overrides beyond those of the queue (tests/runs/test_failures.py): pools that are opened and closed, corrections of money, and the API."""

import pytest
from django.utils import timezone

from runs.queries.override import KINDS, overrides
from tests.factories_pages import client_of
from tests.factories_resources import join
from tests.factories_runs import make_laboratory
from workspaces.access import Actor
from workspaces.commands.external_spend import enter_spend, take_spend_back
from workspaces.commands.pool import change_pool, unbind_pool
from workspaces.models import Pool
from workspaces.queries.event import Filters
from workspaces.verbs import Verb

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_pool_that_is_opened_among_other_changes_and_corrections_of_money_are_overrides() -> None:
    lab = make_laboratory()
    client = client_of(lab.owner)
    with lab.opened():
        pool = Pool.objects.get()
        change_pool(actor=lab.owner, pool=pool, slots=3, reason="Not an override")
        unbind_pool(actor=lab.owner, pool=pool, reason="Moved")
        address = f"/api/v1/workspaces/lab/pools/{pool.public_id}"
        answer = client.patch(address, {"is_accepting": True, "slots": 2, "reason": "Back"}, content_type="application/json")
        assert answer.status_code == 200, answer.content
        spend = enter_spend(actor=lab.owner, amount_micros=5, currency="EUR", what="an interface", spent_at=timezone.now())
        take_spend_back(actor=lab.owner, spend=spend, reason="Typed twice")
        assert [entry.reason for entry in overrides(Filters(), kind="pool").items] == ["Back", "Moved"]
        assert [entry.reason for entry in overrides(Filters(), kind="corrected").items] == ["Typed twice"]
        assert KINDS["corrected"][1] == (Verb.LEDGER_CORRECTED, Verb.SPEND_CORRECTED)
    first = client.get("/api/v1/workspaces/lab/overrides?limit=1").json()
    assert ([row["reason"] for row in first["items"]], first["items"][0]["verb"]) == (["Typed twice"], "spend.corrected")
    second = client.get(f"/api/v1/workspaces/lab/overrides?limit=1&cursor={first['next']}").json()
    assert (second["items"][0]["verb"], second["items"][0]["sentence"]) == ("pool.opened", "Lab-Owner opened the pool local for new work")
    assert client.get("/api/v1/workspaces/lab/overrides?kind=weather").status_code == 422
    with lab.opened():
        researcher: Actor = join(lab.owner, "researcher")
    assert client_of(researcher).get("/api/v1/workspaces/lab/overrides").status_code == 403
