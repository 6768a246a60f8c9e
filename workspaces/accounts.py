"""Accounts of the ledger: opening the four of a window at first use, funding them by the limit, moving amounts between them.

A transfer takes from its debit and gives to its credit, so balances sum to zero. `-source` is what the window was given.
Every function locks the ledger of the open workspace first, so that no two commands can wait for each other in a circle.
"""

import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Max, Min, QuerySet

from workspaces import kept_query, kept_write, scope
from workspaces.audit import Draft
from workspaces.models import LedgerAccount, LedgerEntry, Limit, Workspace
from workspaces.windows import Window, month_of, week_of

Act = LedgerEntry.Act
Side = LedgerAccount.Side


@dataclass(frozen=True, slots=True)
class Accounts:
    """The four accounts of one (unit, window), locked."""

    source: LedgerAccount
    available: LedgerAccount
    reserved: LedgerAccount
    spent: LedgerAccount

    @property
    def window(self) -> Window:
        return Window(self.source.starts_at, self.source.ends_at)

    @property
    def committed(self) -> int:
        """What runs have spent or been promised."""
        return self.spent.balance + self.reserved.balance

    def free_side(self, limits: "Limits") -> LedgerAccount:
        """Where a promise comes from and goes back to: what is available, or the source where no limit funds the window."""
        return self.source if limits.funding(self.source.window) is None else self.available


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one unit, and their amounts by window and mode. They stand as long as the ledger is locked."""

    rows: list[Limit]
    amounts: dict[tuple[str, str], int]

    def stop(self, window: str) -> int | None:
        return self.amounts.get((window, Limit.Mode.STOP))

    def funding(self, window: str) -> int | None:
        """What a window is given: its hard stop, else what needs approval, else what warns; None without a limit."""
        given = (self.amounts.get((window, mode)) for mode in (Limit.Mode.STOP, Limit.Mode.APPROVAL, Limit.Mode.WARN))
        return next((amount for amount in given if amount is not None), None)

    def __contains__(self, window: object) -> bool:
        return any(window == one for one, _ in self.amounts)


def limits_and_accounts(unit: str, moment: datetime) -> tuple[Limits, dict[str, Accounts]]:
    """What `limits_of` and `locked_at` say, in one round trip."""
    limits, accounts = kept_query.ask_together(
        [kept_query.question(Limit, unit=str(unit)), kept_query.Question(_open_accounts, (), {"unit": unit, "moment": moment})]
    )
    return _limits(limits), _by_window(accounts)


def limits_of(unit: str) -> Limits:
    [rows] = kept_query.ask_together([limits_question(unit)])
    return _limits(rows)


def _limits(rows: list[Limit]) -> Limits:
    return Limits(rows, {(row.window, row.mode): row.amount for row in rows})


def window_at(workspace: Workspace, window: str, now: datetime) -> Window:
    """The week or month of the workspace at `now`, the same for every unit.

    A window that is open runs to its end although zone or first day of the week were changed since; the next one leads on from there.
    """
    for starts_at, ends_at in kept_query.ask(_spans, window=window, now=now):
        return Window(starts_at, ends_at)
    accounts = LedgerAccount.objects.filter(window=window, side=Side.SOURCE)
    zone = workspace.zone or "UTC"
    computed = week_of(now, zone, workspace.week_start) if window == Limit.Window.WEEK else month_of(now, zone)
    before = accounts.filter(ends_at__lte=now).aggregate(end=Max("ends_at"))["end"]
    after = accounts.filter(starts_at__gt=now).aggregate(start=Min("starts_at"))["start"]
    return Window(max(computed.starts_at, before or computed.starts_at), min(computed.ends_at, after or computed.ends_at))


def _spans(window: Any, now: Any) -> "QuerySet[Any, Any]":
    opened = LedgerAccount.objects.filter(window=window, side=Side.SOURCE, starts_at__lte=now, ends_at__gt=now)
    return opened.order_by("pk").values_list("starts_at", "ends_at")[:1]


def lock_ledger(event: Draft | None = None) -> Workspace:
    """Lock the ledger of the open workspace until the command commits. The workspace's own row stands for it; `no_key` leaves those in
    peace who only add rows that point at the workspace. A command's `event` remembers that it holds the lock, which is asked for once."""
    if event is not None and event.ledger is not None:
        return event.ledger
    workspace: Workspace
    [[workspace]] = kept_query.ask_together([ledger_lock()])
    if event is not None:
        event.ledger = workspace
    return workspace


def ledger_lock() -> kept_query.Question:
    """What `lock_ledger` asks, for one who asks for more behind the lock in the same round trip; its answer is the workspace's row."""
    return kept_query.Question(_ledger, (), {"key": scope.current_id()})


def _ledger(key: Any) -> "QuerySet[Workspace]":
    return Workspace.objects.select_for_update(no_key=True).filter(pk=key)


def locked(unit: str, window: str, starts_at: datetime) -> Accounts | None:
    """The accounts of the window that starts then, or None where none was opened."""
    [found] = kept_query.ask_together([accounts_of(unit, window, starts_at)])
    return _by_window(found).get(window)


def accounts_of(unit: str, window: str, starts_at: datetime) -> kept_query.Question:
    """What `locked` asks, for one who asks for more in the same round trip."""
    return kept_query.Question(_accounts, (), {"unit": unit, "window": window, "starts_at": starts_at})


def limits_question(unit: str) -> kept_query.Question:
    """What `limits_of` asks, for one who asks for more in the same round trip."""
    return kept_query.question(Limit, unit=str(unit))


def locked_at(unit: str, moment: datetime) -> dict[str, Accounts]:
    """The accounts of the week and of the month that are open at the moment, as far as they were opened, by window."""
    return _by_window(kept_query.ask(_open_accounts, unit=unit, moment=moment))


def _accounts(**of: Any) -> "QuerySet[LedgerAccount]":
    return LedgerAccount.objects.select_for_update(no_key=True).filter(**of).order_by("side")


def _open_accounts(unit: Any, moment: Any) -> "QuerySet[LedgerAccount]":
    return _accounts(unit=unit, starts_at__lte=moment, ends_at__gt=moment).order_by("window", "side")


def _by_window(rows: "Iterable[LedgerAccount]") -> dict[str, Accounts]:
    windows: dict[str, dict[str, LedgerAccount]] = {}
    for row in rows:
        windows.setdefault(row.window, {})[row.side] = row
    return {
        window: Accounts(sides[Side.SOURCE], sides[Side.AVAILABLE], sides[Side.RESERVED], sides[Side.SPENT])
        for window, sides in windows.items()
    }


def open_window(event: Draft, unit: str, window: str, now: datetime) -> Accounts:
    """The accounts of the window that `now` lies in, locked; made and funded at first use."""
    workspace = lock_ledger(event)
    span = window_at(workspace, window, now)
    accounts = locked(unit, window, span.starts_at)
    if accounts is not None:
        return accounts
    sides = (Side.SOURCE, Side.AVAILABLE, Side.RESERVED, Side.SPENT)
    rows = [LedgerAccount(unit=unit, window=window, starts_at=span.starts_at, ends_at=span.ends_at, side=side) for side in sides]
    kept_write.insert(rows)
    event.created(*rows)
    accounts = Accounts(*rows)
    fund(event, accounts, limits_of(unit).funding(window), reason="the window begins")
    return accounts


def fund(event: Draft, accounts: Accounts, amount: int | None, *, reason: str) -> None:
    """Give an open window `amount` in all, by a transfer of the difference; None takes back what is still free. May leave less than nothing
    available: what is committed stays committed."""
    available = accounts.available.balance
    missing = -available if amount is None else amount - accounts.committed - available
    if missing > 0:
        transfer(event, accounts.source, accounts.available, missing, Act.FUND, reason=reason)
    elif missing < 0:
        transfer(event, accounts.available, accounts.source, -missing, Act.FUND, reason=reason)


def transfer(
    event: Draft,
    debit: LedgerAccount,
    credit: LedgerAccount,
    amount: int,
    act: str,
    *,
    run_id: uuid.UUID | None = None,
    run_label: str = "",
    reason: str = "",
    beside: kept_write.Writes | None = None,
) -> None:
    """Take `amount` from the debit and give it to the credit, with its entry. Both are locked; nothing happens for 0. `beside` as in
    `Draft.change_together`."""
    if amount == 0:
        return
    event.changing(debit, credit, as_read=True)
    debit.balance -= amount
    credit.balance += amount
    entry = LedgerEntry(debit=debit, credit=credit, amount=amount, act=act, run_id=run_id, run_label=run_label[:200], reason=reason[:1000])
    writes = kept_write.Writes() if beside is None else beside
    writes.update(debit, ["balance"])
    writes.update(credit, ["balance"])
    writes.insert([entry])
    if beside is None:
        writes.send()
    event.created(entry)
