"""The double-entry ledger under the limits: plain functions that commands call with their draft (contracts.md F). Integers only.

    source ──fund──> available ──reserve──> reserved ──spend──> spent        release: reserved ──> available

A run is entered in the week, which is always kept, and in the month once a limit asks for it (`begin_month`). Without a limit of the window
nothing is available, and promises come from the source, so that accounts add up all the same.
"""

import uuid
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import QuerySet, Sum

from workspaces import kept_query, scope
from workspaces.accounts import (
    Accounts,
    Act,
    Limits,
    Side,
    accounts_of,
    limits_and_accounts,
    limits_of,
    lock_ledger,
    locked,
    locked_at,
    open_window,
    transfer,
    window_at,
)
from workspaces.audit import Draft, Refusal
from workspaces.kept_write import Writes
from workspaces.models import ExternalSpend, LedgerAccount, LedgerEntry, Limit, Unit, Workspace
from workspaces.standings import CALENDAR, SPANS, Standing, amount_words, name_of, standings
from workspaces.thresholds import note_crossings
from workspaces.windows import words

__all__ = ["DoesNotFit", "Standing", "amount_words", "begin_month", "enter", "move", "name_of", "reserve", "settle", "standings"]


class DoesNotFit(Refusal):
    """A hard stop has no room for the amount; the sentence has the arithmetic and the way out."""


def reserve(
    event: Draft, *, unit: str, amount: int, run_id: uuid.UUID, run_label: str, now: datetime, beside: Writes | None = None
) -> datetime:
    """Promise `amount` to a run in the windows of `now`; the start of the week that carries it.

    Admission decides before; that a hard stop holds is looked at here once more, so that no forgotten check can spend a budget. Raises
    DoesNotFit then, ValueError for a negative amount. `beside` as in `Draft.change_together`.
    """
    _not_negative(amount)
    lock_ledger(event)
    limits, opened = limits_and_accounts(unit, now)
    per_run = limits.stop(Limit.Window.RUN)
    if per_run is not None and amount > per_run:
        raise DoesNotFit(f"{amount_words(amount, unit)} are asked for; a run may have {amount_words(per_run, unit)}. Ask for less.")
    windows = _windows(event, unit, now, limits, opened)
    for accounts in windows:
        _stop_unless_it_fits(accounts, amount, now, limits)
    for accounts in windows:
        debit, credit = accounts.free_side(limits), accounts.reserved
        transfer(event, debit, credit, amount, Act.RESERVE, run_id=run_id, run_label=run_label, beside=beside)
    return windows[0].window.starts_at


def settle(
    event: Draft,
    *,
    unit: str,
    reserved: int,
    spent: int,
    run_id: uuid.UUID,
    run_label: str,
    window_start: datetime | None,
    reason: str = "",
    beside: Writes | None = None,
) -> int:
    """Enter what a run has spent once its end is confirmed: up to its reservation, the rest goes back, and what exceeds it is an overrun.

    `spent` is all that the run has spent; what was entered before in windows that have ended (`move`) is not entered again. `reserved` is what
    the run's row says; the ledger must hold the same for it, else ValueError. `window_start` is a moment of the window to charge; it is needed
    where nothing was reserved. `beside` as in `Draft.change_together`. Returns the overrun.
    """
    _not_negative(spent)
    held = _held(event, unit, reserved, run_id, window_start)
    spent -= held.entered
    within, overrun = min(spent, reserved), max(0, spent - reserved)
    limits = limits_of(unit)
    moves = [
        (debit, credit, amount, act)
        for accounts, free_side in ((accounts, accounts.free_side(limits)) for accounts in held.accounts)
        for debit, credit, amount, act in (
            (accounts.reserved, accounts.spent, within, Act.SPEND),
            (accounts.reserved, free_side, reserved - within, Act.RELEASE),
            (free_side, accounts.spent, overrun, Act.OVERRUN),
        )
        if amount
    ]
    for debit, credit, amount, act in moves:
        transfer(event, debit, credit, amount, act, run_id=run_id, run_label=run_label, reason=reason, beside=beside)
    note_crossings(event, held.accounts, limits)
    return overrun


def enter(event: Draft, *, unit: str, amount: int, when: datetime, run_id: uuid.UUID | None, run_label: str, reason: str) -> None:
    """Enter what was spent beside labsite in the windows of `when`; below 0 takes back what was entered so. It has happened, so no limit
    refuses it. Raises Refusal where more would be taken back than is spent there."""
    lock_ledger(event)
    limits = limits_of(unit)
    windows = _windows(event, unit, when, limits)
    for accounts in windows:
        if accounts.spent.balance + amount < 0:
            raise Refusal("The window has less spent than this would take back.")
        free_side = accounts.free_side(limits)
        debit, credit = (free_side, accounts.spent) if amount > 0 else (accounts.spent, free_side)
        transfer(event, debit, credit, abs(amount), Act.EXTERNAL, run_id=run_id, run_label=run_label, reason=reason)
    note_crossings(event, windows, limits)


@dataclass(frozen=True, slots=True)
class Carried:
    """What a run holds after `move`: still reserved, and the start of the week that bears it."""

    reserved: int
    starts_at: datetime | None


def move(
    event: Draft, *, unit: str, reserved: int, spent: int, run_id: uuid.UUID, run_label: str, window_start: datetime | None, now: datetime
) -> Carried:
    """Carry a reservation from a window that has ended into that of `now`, where the next attempt starts. What earlier attempts have spent
    (`spent`, in all) is entered in the windows that they ran in, and only the rest is carried.

    Nothing happens while the window still runs. Raises DoesNotFit where a hard stop of the new window has no room: the run waits.
    """
    held = _held(event, unit, reserved, run_id, window_start)
    ended = [accounts for accounts in held.accounts if accounts.window.ends_at <= now]
    if not ended:
        return Carried(reserved, window_start)
    used = min(max(0, spent - held.entered), reserved)
    rest, starts_at, limits = reserved - used, window_start, limits_of(unit)
    pairs = [(old, open_window(event, unit, old.source.window, now)) for old in ended]
    for _, new in pairs:
        _stop_unless_it_fits(new, rest, now, limits)
    for accounts in held.accounts:
        transfer(
            event,
            accounts.reserved,
            accounts.spent,
            used,
            Act.SPEND,
            run_id=run_id,
            run_label=run_label,
            reason="spent before the window ended",
        )
    note_crossings(event, held.accounts if used else [], limits)
    for old, new in pairs:
        for debit, credit, reason in (
            (old.reserved, old.free_side(limits), "into the next window"),
            (new.free_side(limits), new.reserved, "from the window before"),
        ):
            transfer(event, debit, credit, rest, Act.MOVE, run_id=run_id, run_label=run_label, reason=reason)
        if old.source.window == Limit.Window.WEEK:
            starts_at = new.window.starts_at
    return Carried(rest, starts_at)


def entered(unit: str, run_id: uuid.UUID) -> int:
    """What of a run's spending stands in the ledger already, as its weeks have it."""
    return _entered(kept_query.ask(_moves, run_id=run_id, unit=unit))


def _entered(moves: list[Any]) -> int:
    return sum(amount for amount, _, _, _, _, window, act in moves if window == Limit.Window.WEEK and act == Act.SPEND)


def begin_month(event: Draft, *, unit: str, now: datetime) -> None:
    """Keep the month that runs, from now on: a limit on it was set. What the weeks know of it is carried over, so that a limit set in
    mid-month counts what was promised and spent before. Nothing happens where the month is kept already.

    A run that crossed into the month counts as spent in it where it was settled in it; what was entered from outside, where it was spent.
    """
    span = window_at(lock_ledger(event), Limit.Window.MONTH, now)
    if locked(unit, Limit.Window.MONTH, span.starts_at) is not None:
        return
    month = open_window(event, unit, Limit.Window.MONTH, now)
    free_side = month.free_side(limits_of(unit))
    weekly = LedgerEntry.objects.filter(debit__unit=unit, debit__window=Limit.Window.WEEK)
    promised: dict[tuple[uuid.UUID, str], int] = {}
    for side, sign in (("credit", 1), ("debit", -1)):
        rows = weekly.filter(**{f"{side}__side": Side.RESERVED, f"{side}__balance__gt": 0, "run_id__isnull": False})
        for run_id, label, amount in rows.order_by().values_list("run_id", "run_label").annotate(total=Sum("amount")):
            promised[run_id, label] = promised.get((run_id, label), 0) + sign * amount
    for (run_id, label), amount in promised.items():
        transfer(event, free_side, month.reserved, amount, Act.RESERVE, run_id=run_id, run_label=label, reason="promised before the limit")
    spent = weekly.filter(act__in=(Act.SPEND, Act.OVERRUN), credit__ends_at__gt=span.starts_at, created_at__gte=span.starts_at)
    total = spent.aggregate(total=Sum("amount"))["total"] or 0
    if unit == Unit.API_MICROS:  # each line beside what takes it back
        outside = ExternalSpend.objects.filter(spent_at__gte=span.starts_at, spent_at__lt=span.ends_at)
        total += outside.aggregate(total=Sum("amount_micros"))["total"] or 0
    transfer(event, free_side, month.spent, total, Act.SPEND, reason="spent this month before the limit")


def _windows(event: Draft, unit: str, moment: datetime, limits: Limits, opened: dict[str, Accounts] | None = None) -> list[Accounts]:
    """The week of `moment`, and its month where a limit asks for it or one has asked before: a month is kept to its end. One that lies before
    a month that is kept stays unkept: what its weeks have seen is not in it, and could not be taken from it."""
    opened = locked_at(unit, moment) if opened is None else opened
    week = opened.get(Limit.Window.WEEK) or open_window(event, unit, Limit.Window.WEEK, moment)
    month = opened.get(Limit.Window.MONTH)
    if month is None and Limit.Window.MONTH in limits:
        is_before = LedgerAccount.objects.filter(unit=unit, window=Limit.Window.MONTH, starts_at__gt=moment).exists()
        month = None if is_before else open_window(event, unit, Limit.Window.MONTH, moment)
    return [week] if month is None else [week, month]


def _stop_unless_it_fits(accounts: Accounts, amount: int, now: datetime, limits: Limits) -> None:
    unit, window = accounts.source.unit, accounts.source.window
    stop = limits.stop(window)
    total = accounts.committed + amount
    if stop is None or amount == 0 or total <= stop:
        return
    zone = Workspace.objects.values_list("zone", flat=True).get(pk=scope.current_id()) or "UTC"
    over, until = amount_words(total - stop, unit), words(accounts.window.ends_at, zone, now)
    raise DoesNotFit(
        f"{amount_words(amount, unit)} more would make {amount_words(total, unit)} of {amount_words(stop, unit)} "
        f"{SPANS[Limit.Window(window)].replace('a ', 'this ')}. Free up {over}, wait until {until}, or ask for an increase."
    )


@dataclass(frozen=True, slots=True)
class _Held:
    """Accounts that hold a run's reservation, locked, the week's first; and what of its spending is entered already (`entered`)."""

    accounts: list[Accounts]
    entered: int


def _held(event: Draft, unit: str, reserved: int, run_id: uuid.UUID, window_start: datetime | None) -> _Held:
    """By the run's own entries. Where nothing was promised: the accounts of `window_start`."""
    lock_ledger(event)
    _not_negative(reserved)
    held: dict[tuple[str, datetime], int] = {}
    moves = kept_query.ask(_moves, run_id=run_id, unit=unit)
    for amount, debit, taken_at, credit, given_at, window, _ in moves:
        for side, starts_at, change in ((debit, taken_at, -amount), (credit, given_at, amount)):
            if side == Side.RESERVED:
                held[window, starts_at] = held.get((window, starts_at), 0) + change
    held = {key: amount for key, amount in held.items() if amount}
    if not held and reserved == 0:
        if window_start is None:
            raise ValueError(f"Run {run_id} was promised nothing of {unit}, and in no window.")
        return _Held(_windows(event, unit, window_start, limits_of(unit)), _entered(moves))
    if set(held.values()) != {reserved}:
        raise ValueError(f"The ledger does not hold {reserved} of {unit} for run {run_id}, but {sorted(held.values())}.")
    found = [locked(unit, *key) for key in sorted(held, key=lambda key: CALENDAR.index(Limit.Window(key[0])))]
    return _Held([accounts for accounts in found if accounts is not None], _entered(moves))


def questions(*, unit: str, run_id: uuid.UUID, window_start: datetime | None) -> list[kept_query.Question]:
    """What `move` and `settle` ask about a run that is promised something in the week of `window_start`, for one who asks for more in the same
    round trip."""
    of_week = [] if window_start is None else [accounts_of(unit, Limit.Window.WEEK, window_start)]
    return [kept_query.Question(_moves, (), {"run_id": run_id, "unit": unit}), *of_week]


def _moves(run_id: Any, unit: Any) -> "QuerySet[Any, Any]":
    """What was moved for a run; both accounts of a move are of one window's kind."""
    of_run = LedgerEntry.objects.filter(run_id=run_id, debit__unit=unit)
    return of_run.values_list("amount", "debit__side", "debit__starts_at", "credit__side", "credit__starts_at", "debit__window", "act")


def _not_negative(amount: int) -> None:
    if isinstance(amount, bool) or not isinstance(amount, int) or amount < 0:
        raise ValueError(f"The ledger counts in whole numbers from 0 on, not {amount!r}.")
