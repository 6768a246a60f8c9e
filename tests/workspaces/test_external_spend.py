"""API spend beside labsite: it counts in the windows of its instant, exactly, and is taken back by a line of its own."""

import uuid
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from tests.factories import make_workspace
from tests.factories_resources import join, reserve, settle
from workspaces import scope
from workspaces.access import Actor, Role
from workspaces.audit import Denied, Refusal
from workspaces.commands.external_spend import enter_spend, take_spend_back
from workspaces.commands.limit import set_limit
from workspaces.models import Crossing, ExternalSpend, LedgerAccount, LedgerEntry, Limit, Unit
from workspaces.queries.ledger import lines, recount
from workspaces.standings import standings
from workspaces.windows import month_of

EURO = 1_000_000


@pytest.fixture
def lab() -> Iterator[Actor]:
    workspace, owner = make_workspace("lab", zone="Europe/Berlin")
    with scope.open_workspace(workspace.pk):
        for window, amount in ((Limit.Window.WEEK, 10), (Limit.Window.MONTH, 30)):
            set_limit(actor=owner, unit=Unit.API_MICROS, window=window, amount=amount * EURO, mode=Limit.Mode.STOP, reason="as agreed")
        yield owner


def enter(actor: Actor, micros: int, **changed: Any) -> ExternalSpend:
    values: dict[str, Any] = {"currency": "EUR", "what": "judging of games", "spent_at": timezone.now(), **changed}
    return enter_spend(actor=actor, amount_micros=micros, **values)


def used(now: datetime | None = None) -> list[int]:
    return [standing.used for standing in standings(now=now or timezone.now())]


@pytest.mark.django_db
def test_it_is_spent_in_every_window_of_its_instant_and_taken_back_by_a_line(lab: Actor) -> None:
    spend = enter(lab, 3 * EURO + 1)
    assert used() == [3 * EURO + 1, 3 * EURO + 1]
    back = take_spend_back(actor=lab, spend=spend, reason="It was another group's.")
    assert (back.amount_micros, back.corrects) == (-spend.amount_micros, spend)
    assert used() == [0, 0]
    assert recount() == []
    for again in (spend, back):
        with pytest.raises(Refusal):
            take_spend_back(actor=lab, spend=again, reason="once more")
    assert LedgerEntry.objects.filter(act=LedgerEntry.Act.EXTERNAL).count() == 4


@pytest.mark.django_db
def test_what_has_been_spent_is_entered_above_a_hard_stop_and_told_of(lab: Actor) -> None:
    enter(lab, 12 * EURO)
    assert used() == [12 * EURO, 12 * EURO]
    assert list(Crossing.objects.order_by("percent").values_list("percent", flat=True)) == [80, 100]


@pytest.mark.django_db
def test_it_stands_beside_what_the_run_itself_reported(lab: Actor) -> None:
    run_id = uuid.uuid4()
    starts_at = reserve(actor=lab, unit=Unit.API_MICROS, amount=2 * EURO, run_id=run_id, now=timezone.now())
    enter(lab, EURO, run_id=run_id, run_label="a run")
    settle(actor=lab, unit=Unit.API_MICROS, reserved=2 * EURO, spent=2 * EURO, run_id=run_id, window_start=starts_at)
    assert used() == [3 * EURO, 3 * EURO]
    weekly = next(line for line in lines(unit=Unit.API_MICROS).items if line.newest.window == Limit.Window.WEEK and line.reserved)
    assert (weekly.spent, weekly.outside, weekly.is_open) == (3 * EURO, EURO, False)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("micros", "changed", "field"),
    [
        (0, {}, "amount_micros"),
        (-5, {}, "amount_micros"),
        (5, {"what": "  "}, "what"),
        (5, {"spent_at": timezone.now() + timedelta(days=1)}, "spent_at"),
        (5, {"spent_at": timezone.now() - timedelta(days=200)}, "spent_at"),
    ],
    ids=["nothing", "less than nothing", "for nothing", "tomorrow", "long ago"],
)
def test_what_cannot_be_is_refused(lab: Actor, micros: int, changed: dict[str, Any], field: str) -> None:
    with pytest.raises(Refusal) as refused:
        enter(lab, micros, **changed)
    assert refused.value.field == field
    assert not ExternalSpend.objects.exists()


@pytest.mark.django_db
def test_whoever_may_launch_may_enter_what_they_spent_and_a_viewer_may_not(lab: Actor) -> None:
    enter(join(lab, "ida", Role.RESEARCHER), EURO)
    with pytest.raises(Denied):
        enter(join(lab, "vera", Role.VIEWER), EURO)


def month_limit(actor: Actor) -> None:
    set_limit(
        actor=actor, unit=Unit.API_MICROS, window=Limit.Window.MONTH, amount=30 * EURO, mode=Limit.Mode.WARN, reason="as agreed"
    )  # fmt: skip


@pytest.fixture
def unlimited() -> Iterator[Actor]:
    workspace, owner = make_workspace("lab", zone="Europe/Berlin")
    with scope.open_workspace(workspace.pk):
        yield owner


@pytest.mark.django_db
def test_a_month_that_is_limited_later_counts_what_was_entered_for_it_and_not_taken_back(unlimited: Actor) -> None:
    now = timezone.now()
    month = month_of(now, "Europe/Berlin")
    enter(unlimited, EURO)
    take_spend_back(actor=unlimited, spend=enter(unlimited, 2 * EURO), reason="It was another group's.")
    before = enter(unlimited, 4 * EURO, spent_at=month.starts_at - timedelta(minutes=1))  # perhaps in the same week
    month_limit(unlimited)
    assert used() == [EURO]
    take_spend_back(actor=unlimited, spend=before, reason="It was another group's.")
    assert used() == [EURO]
    assert recount() == []


@pytest.mark.django_db
def test_what_was_entered_before_a_month_was_kept_can_be_taken_back_when_it_is_over(unlimited: Actor) -> None:
    long_ago = timezone.now() - timedelta(days=45)
    spend = enter(unlimited, 3 * EURO, spent_at=long_ago)
    month_limit(unlimited)
    take_spend_back(actor=unlimited, spend=spend, reason="It was another group's.")
    assert used() == [0]
    assert not LedgerAccount.objects.filter(window=Limit.Window.MONTH, ends_at__lt=timezone.now()).exists()
    assert recount() == []
