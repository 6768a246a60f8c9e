"""The ledger on real PostgreSQL: promises never exceed a hard stop, whoever asks at once; balances are the sum of their entries, always."""

import random
import threading
import uuid
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.models import Sum
from django.utils import timezone

from tests.factories import make_workspace
from tests.factories_resources import in_one, move, reserve, settle, spoil_balance
from workspaces import ledger, scope
from workspaces.access import Actor
from workspaces.audit import Draft, Refusal
from workspaces.commands.limit import remove_limit, set_limit
from workspaces.commands.workspace import configure_workspace
from workspaces.ledger import DoesNotFit, standings
from workspaces.models import LedgerAccount, LedgerEntry, Limit, Unit
from workspaces.queries.ledger import recount
from workspaces.queries.overrun import overruns

pytestmark = pytest.mark.django_db
HOUR = 3_600_000
NOW = datetime(2026, 11, 25, 12, 0, tzinfo=UTC)  # a Wednesday
WEEK = timedelta(days=7)


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """A change of a limit looks at the window that runs: here it is that of NOW, in whichever week the tests are run."""
    monkeypatch.setattr(timezone, "now", lambda: NOW)


@pytest.fixture
def lab() -> Iterator[Actor]:
    workspace, owner = make_workspace("lab", zone="Europe/Berlin")
    with scope.open_workspace(workspace.pk):
        yield owner


def weekly(actor: Actor, hours: int, mode: str = Limit.Mode.STOP, reason: str = "as agreed") -> None:
    set_limit(actor=actor, unit=Unit.GPU_MS, window=Limit.Window.WEEK, amount=hours * HOUR, mode=mode, reason=reason)


def balances(unit: str = Unit.GPU_MS, window: str = Limit.Window.WEEK) -> dict[str, int]:
    rows = LedgerAccount.objects.filter(unit=unit, window=window).order_by().values_list("side").annotate(total=Sum("balance"))
    return {side: total for side, total in rows if total}


def promise(actor: Actor, hours: int, now: datetime = NOW, unit: str = Unit.GPU_MS) -> tuple[uuid.UUID, datetime]:
    run_id = uuid.uuid4()
    return run_id, reserve(actor=actor, unit=unit, amount=hours * HOUR, run_id=run_id, now=now)


def test_a_run_reserves_then_spends_what_it_used_and_gives_back_the_rest(lab: Actor) -> None:
    weekly(lab, 10)
    run_id, starts_at = promise(lab, 4)
    assert starts_at == datetime(2026, 11, 22, 23, 0, tzinfo=UTC)  # Monday 00:00 in Berlin
    assert balances() == {"source": -10 * HOUR, "available": 6 * HOUR, "reserved": 4 * HOUR}
    overrun = settle(actor=lab, unit=Unit.GPU_MS, reserved=4 * HOUR, spent=3 * HOUR + 7, run_id=run_id, window_start=starts_at)
    assert overrun == 0
    assert balances() == {"source": -10 * HOUR, "available": 7 * HOUR - 7, "spent": 3 * HOUR + 7}
    assert recount() == []


def test_what_exceeds_a_reservation_is_an_overrun_that_everyone_sees(lab: Actor) -> None:
    weekly(lab, 4)
    run_id, starts_at = promise(lab, 4)
    overrun = settle(actor=lab, unit=Unit.GPU_MS, reserved=4 * HOUR, spent=5 * HOUR, run_id=run_id, window_start=starts_at)
    assert overrun == HOUR
    assert LedgerEntry.objects.get(act=LedgerEntry.Act.OVERRUN).amount == HOUR
    assert balances() == {"source": -4 * HOUR, "available": -HOUR, "spent": 5 * HOUR}
    (standing,) = standings(now=NOW)
    assert (standing.used, standing.reserved, standing.free) == (5 * HOUR, 0, -HOUR)


def test_a_run_that_never_started_costs_nothing(lab: Actor) -> None:
    weekly(lab, 4)
    run_id, starts_at = promise(lab, 4)
    settle(actor=lab, unit=Unit.GPU_MS, spent=0, reserved=4 * HOUR, run_id=run_id, window_start=starts_at)
    assert balances() == {"source": -4 * HOUR, "available": 4 * HOUR}


def test_a_settled_run_cannot_be_settled_again(lab: Actor) -> None:
    weekly(lab, 4)
    run_id, starts_at = promise(lab, 4)
    order: dict[str, Any] = {"actor": lab, "unit": Unit.GPU_MS, "reserved": 4 * HOUR, "run_id": run_id, "window_start": starts_at}
    settle(spent=HOUR, **order)
    with pytest.raises(ValueError, match="does not hold"):
        settle(spent=HOUR, **order)
    assert balances()["spent"] == HOUR


def test_a_hard_stop_holds_although_nobody_asked_admission(lab: Actor) -> None:
    weekly(lab, 10)
    promise(lab, 8)
    with pytest.raises(DoesNotFit) as refused:
        promise(lab, 3)
    assert str(refused.value) == (
        "3 GPU-hours more would make 11 GPU-hours of 10 GPU-hours this week. "
        "Free up 1 GPU-hour, wait until Monday 00:00 Europe/Berlin, or ask for an increase."
    )
    assert balances()["reserved"] == 8 * HOUR


def test_above_a_limit_that_asks_or_warns_the_ledger_promises_on(lab: Actor) -> None:
    weekly(lab, 2, mode=Limit.Mode.APPROVAL)
    promise(lab, 3)
    assert balances() == {"source": -2 * HOUR, "available": -HOUR, "reserved": 3 * HOUR}


def test_one_run_may_not_have_more_than_the_limit_of_a_run(lab: Actor) -> None:
    set_limit(actor=lab, unit=Unit.GPU_MS, window=Limit.Window.RUN, amount=2 * HOUR, mode=Limit.Mode.STOP)
    with pytest.raises(DoesNotFit, match="a run may have 2 GPU-hours"):
        promise(lab, 3)


def test_without_a_weekly_limit_accounts_add_up_all_the_same(lab: Actor) -> None:
    run_id, starts_at = promise(lab, 3)
    assert balances() == {"source": -3 * HOUR, "reserved": 3 * HOUR}
    weekly(lab, 10)  # a limit that comes in mid-week counts what is promised already
    assert balances() == {"source": -10 * HOUR, "available": 7 * HOUR, "reserved": 3 * HOUR}
    settle(actor=lab, unit=Unit.GPU_MS, reserved=3 * HOUR, spent=HOUR, run_id=run_id, window_start=starts_at)
    assert balances() == {"source": -10 * HOUR, "available": 9 * HOUR, "spent": HOUR}
    assert recount() == []


def test_lowering_a_limit_below_what_is_committed_takes_nothing_back_and_stops_what_is_new(lab: Actor) -> None:
    weekly(lab, 10)
    run_id, starts_at = promise(lab, 8)
    weekly(lab, 5, reason="less money")
    assert balances() == {"source": -5 * HOUR, "available": -3 * HOUR, "reserved": 8 * HOUR}
    (standing,) = standings(now=NOW)
    assert standing.free == -3 * HOUR
    with pytest.raises(DoesNotFit):
        promise(lab, 1)
    settle(actor=lab, unit=Unit.GPU_MS, reserved=8 * HOUR, spent=2 * HOUR, run_id=run_id, window_start=starts_at)
    promise(lab, 3)
    assert recount() == []


def test_a_change_of_a_limit_wants_a_reason_and_the_needed_ones_stay(lab: Actor) -> None:
    weekly(lab, 10)
    with pytest.raises(Refusal, match="Say why"):
        weekly(lab, 12, reason=" ")
    with pytest.raises(Refusal, match="already"):
        weekly(lab, 10)
    with pytest.raises(Refusal, match="keeps a limit"):
        remove_limit(actor=lab, unit=Unit.GPU_MS, window=Limit.Window.WEEK, mode=Limit.Mode.STOP, reason="gone")
    weekly(lab, 8, mode=Limit.Mode.WARN)
    promise(lab, 1)
    remove_limit(actor=lab, unit=Unit.GPU_MS, window=Limit.Window.WEEK, mode=Limit.Mode.STOP, reason="only warn")
    assert balances() == {"source": -8 * HOUR, "available": 7 * HOUR, "reserved": HOUR}


@pytest.mark.parametrize("amount", [-1, 1.5, True, 2**63, "3"])
def test_amounts_that_are_no_whole_number_are_refused(lab: Actor, amount: Any) -> None:
    with pytest.raises(Refusal, match="whole number"):
        set_limit(actor=lab, unit=Unit.GPU_MS, window=Limit.Window.WEEK, amount=amount, mode=Limit.Mode.STOP)
    if amount != 2**63:
        with pytest.raises(ValueError, match="whole numbers"):
            reserve(actor=lab, unit=Unit.GPU_MS, amount=amount, run_id=uuid.uuid4(), now=NOW)


def test_a_reservation_moves_into_the_next_window_or_waits(lab: Actor) -> None:
    weekly(lab, 10)
    run_id, starts_at = promise(lab, 6)
    order: dict[str, Any] = {
        "actor": lab,
        "unit": Unit.GPU_MS,
        "reserved": 6 * HOUR,
        "spent": 0,
        "run_id": run_id,
        "window_start": starts_at,
    }
    assert move(now=NOW + timedelta(days=1), **order).starts_at == starts_at
    promise(lab, 5, now=NOW + WEEK)
    with pytest.raises(DoesNotFit, match="this week"):
        move(now=NOW + WEEK, **order)
    assert balances()["reserved"] == 11 * HOUR
    moved = move(now=NOW + 2 * WEEK, **order).starts_at
    assert moved == starts_at + 2 * WEEK
    sides = LedgerAccount.objects.filter(starts_at=starts_at, side="available").values_list("balance", flat=True)
    assert list(sides) == [10 * HOUR]
    settle(actor=lab, unit=Unit.GPU_MS, reserved=6 * HOUR, spent=6 * HOUR, run_id=run_id, window_start=moved)
    assert LedgerAccount.objects.get(starts_at=moved, side="spent").balance == 6 * HOUR
    assert recount() == []


def test_what_was_spent_before_the_window_ended_is_charged_to_it(lab: Actor) -> None:
    weekly(lab, 6)
    run_id, starts_at = promise(lab, 6)
    order: dict[str, Any] = {"actor": lab, "unit": Unit.GPU_MS, "run_id": run_id}
    promise(lab, 2, now=NOW + WEEK)
    carried = move(reserved=6 * HOUR, spent=2 * HOUR, window_start=starts_at, now=NOW + WEEK, **order)
    assert carried == ledger.Carried(4 * HOUR, starts_at + WEEK), "the rest has room, the whole would not have"
    settle(reserved=4 * HOUR, spent=3 * HOUR, window_start=carried.starts_at, **order)
    spent = dict(LedgerAccount.objects.filter(side="spent").values_list("starts_at", "balance"))
    assert spent == {starts_at: 2 * HOUR, starts_at + WEEK: HOUR}
    assert recount() == []


def test_a_month_is_kept_beside_the_week(lab: Actor) -> None:
    set_limit(actor=lab, unit=Unit.API_MICROS, window=Limit.Window.MONTH, amount=5 * HOUR, mode=Limit.Mode.STOP)
    run_id, starts_at = promise(lab, 4, unit=Unit.API_MICROS)
    with pytest.raises(DoesNotFit, match="this month"):
        promise(lab, 2, unit=Unit.API_MICROS)
    settle(actor=lab, unit=Unit.API_MICROS, reserved=4 * HOUR, spent=HOUR, run_id=run_id, window_start=starts_at)
    assert balances(Unit.API_MICROS, Limit.Window.MONTH)["spent"] == balances(Unit.API_MICROS, Limit.Window.WEEK)["spent"] == HOUR
    (standing,) = standings(now=NOW)
    assert (standing.free, standing.until) == (4 * HOUR, "Tuesday 00:00 Europe/Berlin")


def test_spending_without_a_reservation_is_an_overrun_of_its_week(lab: Actor) -> None:
    run_id, starts_at = promise(lab, 0, unit=Unit.API_MICROS)
    assert settle(actor=lab, unit=Unit.API_MICROS, reserved=0, spent=12, run_id=run_id, window_start=starts_at) == 12
    assert balances(Unit.API_MICROS) == {"source": -12, "spent": 12}


def test_a_changed_zone_gives_no_second_budget_to_the_week_that_runs(lab: Actor) -> None:
    weekly(lab, 10)
    _, first = promise(lab, 6)
    from_berlin = NOW + timedelta(days=4, hours=12)  # Monday 01:00 in Berlin, Sunday evening in New York
    configure_workspace(actor=lab, zone="America/New_York")
    _, same = promise(lab, 4)
    assert same == first
    with pytest.raises(DoesNotFit):
        promise(lab, 1)
    _, following = promise(lab, 1, now=from_berlin)
    windows = list(LedgerAccount.objects.filter(unit=Unit.GPU_MS, side="source").order_by("starts_at").values_list("starts_at", "ends_at"))
    assert windows[0][1] == windows[1][0] == following


@pytest.mark.django_db(transaction=True)
def test_forty_at_once_against_room_for_ten_are_exactly_ten() -> None:
    workspace, owner = make_workspace("race", zone="Europe/Berlin")
    with scope.open_workspace(workspace.pk):
        weekly(owner, 10)
    admitted: list[uuid.UUID] = []
    refused: list[str] = []
    barrier = threading.Barrier(8)

    def five_times() -> None:
        try:
            with scope.open_workspace(workspace.pk):
                barrier.wait(timeout=30)
                for _ in range(5):
                    try:
                        admitted.append(promise(owner, 1)[0])
                    except DoesNotFit as no:
                        refused.append(str(no))
        finally:
            connection.close()

    threads = [threading.Thread(target=five_times) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=90)
    with scope.open_workspace(workspace.pk):
        assert (len(admitted), len(refused)) == (10, 30)
        assert balances() == {"source": -10 * HOUR, "reserved": 10 * HOUR}
        assert LedgerAccount.objects.count() == 4  # first use at once made the window once
        assert recount() == []


@dataclass
class Chance:
    """Throws the operations; remembers what every run holds and what all have spent."""

    dice: random.Random
    now: datetime = NOW
    held: list[tuple[str, uuid.UUID, int, int, datetime]] = field(default_factory=list)  # unit, run, still reserved, entered, window
    spent: int = 0
    done: dict[str, int] = field(default_factory=dict)

    def act(self, event: Draft) -> None:
        self.now += timedelta(minutes=self.dice.randrange(90))
        act = self.dice.choices(["reserve", "settle", "move", "cancel", "enter"], [45, 23, 14, 10, 8])[0] if self.held else "reserve"
        self.done[act] = self.done.get(act, 0) + 1
        if act == "enter":
            for amount in (HOUR, -HOUR)[: self.dice.randrange(1, 3)]:  # every other one is taken back
                ledger.enter(event, unit=Unit.API_MICROS, amount=amount, when=self.now, run_id=None, run_label="", reason="outside")
            return
        if act == "reserve":
            unit: str = self.dice.choice([Unit.GPU_MS, Unit.API_MICROS])
            amount, run_id = self.dice.randrange(4 * HOUR), uuid.uuid4()
            with suppress(DoesNotFit):
                starts_at = ledger.reserve(event, unit=unit, amount=amount, run_id=run_id, run_label="", now=self.now)
                self.held.append((unit, run_id, amount, 0, starts_at))
            return
        unit, run_id, amount, entered, starts_at = self.held.pop(self.dice.randrange(len(self.held)))
        order: dict[str, Any] = {"unit": unit, "reserved": amount, "run_id": run_id, "run_label": "", "window_start": starts_at}
        used = 0 if act == "cancel" else self.dice.randrange(2 * amount + 1 if self.dice.random() < 0.2 and act == "settle" else amount + 1)
        if act == "move":
            with suppress(DoesNotFit):
                carried = ledger.move(event, now=self.now, spent=entered + used, **order)
                entered, amount, starts_at = entered + amount - carried.reserved, carried.reserved, carried.starts_at or starts_at
                self.spent += order["reserved"] - amount if unit == Unit.GPU_MS else 0
            self.held.append((unit, run_id, amount, entered, starts_at))
        else:
            ledger.settle(event, spent=entered + used, **order)
            self.spent += used if unit == Unit.GPU_MS else 0


@pytest.mark.timeout(300)
def test_two_thousand_operations_in_any_order_keep_every_sum(lab: Actor) -> None:
    chance = Chance(random.Random(20261128))  # noqa: S311  # a reproducible order, no secret
    weekly(lab, 50)
    set_limit(actor=lab, unit=Unit.API_MICROS, window=Limit.Window.MONTH, amount=400 * HOUR, mode=Limit.Mode.WARN)

    def forty(event: Draft) -> None:
        for _ in range(40):
            chance.act(event)

    for turn in range(50):
        in_one(actor=lab, body=forty)
        if turn % 10 == 9:
            weekly(lab, 20 + turn, reason="another amount")
            assert recount() == []
    assert (sum(chance.done.values()), min(chance.done.values()) > 100) == (2000, True)
    assert LedgerAccount.objects.aggregate(total=Sum("balance"))["total"] == 0
    assert balances()["spent"] == chance.spent
    assert balances()["reserved"] == sum(amount for unit, _, amount, _, _ in chance.held if unit == Unit.GPU_MS)
    for row in LedgerAccount.objects.order_by().values("window", "unit", "starts_at").annotate(total=Sum("balance")):
        assert row["total"] == 0, row


def test_recount_sees_a_balance_that_is_not_the_sum_of_its_entries(lab: Actor) -> None:
    weekly(lab, 10)
    promise(lab, 1)
    spoil_balance(actor=lab)
    assert {miscount.what for miscount in recount()} == {"GPU time, a week, spent", "sum of all balances"}


def test_a_month_limit_set_in_mid_month_counts_what_was_promised_and_spent_before(lab: Actor) -> None:
    now = timezone.now()
    weekly(lab, 50)
    (ended, starts_at), (running, _), (released, _) = promise(lab, 4, now), promise(lab, 3, now), promise(lab, 2, now)
    settle(actor=lab, unit=Unit.GPU_MS, reserved=4 * HOUR, spent=2 * HOUR, run_id=ended, window_start=starts_at)
    settle(actor=lab, unit=Unit.GPU_MS, spent=0, reserved=2 * HOUR, run_id=released, window_start=starts_at)
    set_limit(actor=lab, unit=Unit.GPU_MS, window=Limit.Window.MONTH, amount=6 * HOUR, mode=Limit.Mode.STOP)
    assert balances(window=Limit.Window.MONTH) == {"source": -6 * HOUR, "available": HOUR, "reserved": 3 * HOUR, "spent": 2 * HOUR}
    with pytest.raises(DoesNotFit, match="7 GPU-hours of 6 GPU-hours this month"):
        promise(lab, 2, now)
    settle(actor=lab, unit=Unit.GPU_MS, reserved=3 * HOUR, spent=HOUR, run_id=running, window_start=starts_at)
    assert balances(window=Limit.Window.MONTH) == {"source": -6 * HOUR, "available": 3 * HOUR, "spent": 3 * HOUR}
    assert recount() == []


def test_a_month_whose_limit_goes_and_comes_again_misses_nothing(lab: Actor) -> None:
    now = timezone.now()
    monthly: dict[str, Any] = {"actor": lab, "unit": Unit.GPU_MS, "window": Limit.Window.MONTH, "mode": Limit.Mode.STOP}
    set_limit(amount=6 * HOUR, **monthly)
    promise(lab, 1, now)
    remove_limit(reason="not now", **monthly)
    run_id, starts_at = promise(lab, 3, now)
    settle(actor=lab, unit=Unit.GPU_MS, reserved=3 * HOUR, spent=3 * HOUR, run_id=run_id, window_start=starts_at)
    set_limit(amount=5 * HOUR, **monthly)
    assert balances(window=Limit.Window.MONTH) == {"source": -5 * HOUR, "available": HOUR, "reserved": HOUR, "spent": 3 * HOUR}
    assert recount() == []


def test_an_overrun_is_an_alarm_until_its_week_has_ended(lab: Actor) -> None:
    weekly(lab, 4)
    run_id, starts_at = promise(lab, 2)
    assert overruns(now=NOW) == []
    settle(actor=lab, unit=Unit.GPU_MS, reserved=2 * HOUR, spent=3 * HOUR, run_id=run_id, window_start=starts_at)
    (alarm,) = overruns(now=NOW)
    assert (alarm.run_ref, alarm.words) == (f"run_{run_id.hex}", "a run used 1 GPU-hour more than was reserved for it.")
    assert overruns(now=NOW + WEEK) == []


def test_runs_at_once_wait_or_warn_and_are_never_approved(lab: Actor) -> None:
    order: dict[str, Any] = {"actor": lab, "unit": Unit.RUNS, "window": Limit.Window.NOW, "amount": 4}
    with pytest.raises(Refusal, match="nobody could approve it"):
        set_limit(mode=Limit.Mode.APPROVAL, **order)
    set_limit(mode=Limit.Mode.WARN, **order)
    set_limit(mode=Limit.Mode.STOP, **order)
