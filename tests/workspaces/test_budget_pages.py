"""Pages of the budget: alarms, the history of a limit, the count from zero, and spend from outside."""

from collections.abc import Iterator

import pytest
from django.test import Client
from django.utils import timezone

from tests.factories import make_workspace
from tests.factories_resources import join, settle, spoil_balance
from tests.workspaces.test_ledger import HOUR, promise, weekly
from workspaces import scope
from workspaces.access import Actor, Role
from workspaces.commands.limit import set_limit
from workspaces.models import ExternalSpend, Limit, Recount, Unit
from workspaces.queries.ledger import recount

HOSTILE = "<script>alert(1)</script> \u202eאבג"


@pytest.fixture
def lab() -> Iterator[tuple[Actor, Client]]:
    workspace, owner = make_workspace("lab", zone="Europe/Berlin")
    client = Client()
    assert owner.user is not None
    client.force_login(owner.user)
    with scope.open_workspace(workspace.pk):
        yield owner, client


def spend(actor: Actor, hours: int) -> None:
    run_id, starts_at = promise(actor, hours, timezone.now())
    settle(actor=actor, unit=Unit.GPU_MS, reserved=hours * HOUR, spent=hours * HOUR, run_id=run_id, window_start=starts_at)


@pytest.mark.django_db
def test_a_threshold_stands_on_the_budget_page_and_on_home(lab: tuple[Actor, Client]) -> None:
    owner, client = lab
    weekly(owner, 10)
    spend(owner, 8)
    for path in ("budget/", ""):
        assert (
            "GPU-hours a week: 80 % reached, 8 GPU-hours of 10 GPU-hours spent then."
            in client.get(f"/workspaces/lab/{path}").content.decode()
        )


@pytest.mark.django_db
def test_the_history_of_a_limit_says_who_why_before_and_after(lab: tuple[Actor, Client]) -> None:
    owner, client = lab
    weekly(owner, 10)
    limit = set_limit(
        actor=join(owner, "eve", Role.ADMIN), unit=Unit.GPU_MS, window=Limit.Window.WEEK, amount=4 * HOUR, mode=Limit.Mode.STOP, reason=HOSTILE,
        thresholds=[50],
    )  # fmt: skip
    page = client.get(f"/workspaces/lab/budget/limits/{limit.public_id}/history/").content.decode()
    assert "10 GPU-hours → 4 GPU-hours" in page
    assert "80 %, 100 % → 50 %" in page
    assert "Eve" in page
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert" in page


@pytest.mark.django_db
def test_the_button_counts_and_what_differs_is_shown_until_a_person_corrects_it(lab: tuple[Actor, Client]) -> None:
    owner, client = lab
    weekly(owner, 10)
    promise(owner, 4)
    assert "Not counted from zero yet" in client.get("/workspaces/lab/ledger/").content.decode()
    client.post("/workspaces/lab/ledger/recount/")
    assert "Every balance is the sum of its entries" in client.get("/workspaces/lab/ledger/").content.decode()
    spoil_balance(actor=owner)
    client.post("/workspaces/lab/ledger/recount/")
    assert not Recount.objects.latest("created_at").is_right
    assert "not what the entries say" in client.get("/workspaces/lab/ledger/").content.decode()
    assert "The ledger does not add up" in client.get("/workspaces/lab/").content.decode()
    assert client.post("/workspaces/lab/ledger/correct/", {"reason": ""}).status_code == 422
    assert client.post("/workspaces/lab/ledger/correct/", {"reason": "A defect."}).status_code == 303
    assert recount() == []
    assert "The ledger does not add up" not in client.get("/workspaces/lab/").content.decode()


@pytest.mark.django_db
def test_spend_is_entered_and_taken_back_on_its_pages(lab: tuple[Actor, Client]) -> None:
    _, client = lab
    values = {"amount": "1.25", "currency": "eur", "what": HOSTILE, "spent_on": "", "run": ""}
    assert client.post("/workspaces/lab/budget/spend/new/", {**values, "run": "run_nowhere"}).status_code == 409
    assert client.post("/workspaces/lab/budget/spend/new/", {**values, "amount": "0.0000001"}).status_code == 422
    assert client.post("/workspaces/lab/budget/spend/new/", values).status_code == 303
    spend = ExternalSpend.objects.get()
    page = client.get("/workspaces/lab/budget/spend/").content.decode()
    assert "1.25 EUR" in page
    assert "<script>alert" not in page
    assert client.post(f"/workspaces/lab/budget/spend/{spend.public_id}/take-back/", {"reason": "not ours"}).status_code == 303
    assert "taken back" in client.get("/workspaces/lab/budget/spend/").content.decode()
    assert client.post(f"/workspaces/lab/budget/spend/{spend.public_id}/take-back/", {"reason": "again"}).status_code == 409


@pytest.mark.django_db
def test_a_limit_is_set_with_its_thresholds(lab: tuple[Actor, Client]) -> None:
    _, client = lab
    values = {"limit": "gpu_ms week", "mode": "stop", "amount": "10", "thresholds": "50 %, 95", "reason": "as agreed"}
    assert client.post("/workspaces/lab/budget/limits/new/", {**values, "thresholds": "half"}).status_code == 422
    assert client.post("/workspaces/lab/budget/limits/new/", {**values, "thresholds": "0"}).status_code == 409
    assert client.post("/workspaces/lab/budget/limits/new/", values).status_code == 303
    assert Limit.objects.get().thresholds == [50, 95]
    assert client.post("/workspaces/lab/budget/limits/new/", {**values, "limit": "slots run", "amount": "2"}).status_code == 303
    assert "told at 50 %, 95 %" in client.get("/workspaces/lab/budget/").content.decode()
