"""Accounts of the ledger: opening the four of a window at first use, funding them by the limit, moving amounts between them.

A transfer takes from its debit and gives to its credit, so balances sum to zero. `-source` is what the window was given.
Every function locks the ledger of the open workspace first, so that no two commands can wait for each other in a circle.
"""

import uuid
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Max, Min

from workspaces import scope
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

    @property
    def free_side(self) -> LedgerAccount:
        """Where a promise comes from and goes back to: what is available, or the source where no limit funds the window."""
        return self.source if funding(self.source.unit, self.source.window) is None else self.available


def window_at(workspace: Workspace, window: str, now: datetime) -> Window:
    """The week or month of the workspace at `now`, the same for every unit.

    A window that is open runs to its end although zone or first day of the week were changed since; the next one leads on from there.
    """
    accounts = LedgerAccount.objects.filter(window=window, side=Side.SOURCE)
    current = accounts.filter(starts_at__lte=now, ends_at__gt=now).first()
    if current is not None:
        return Window(current.starts_at, current.ends_at)
    zone = workspace.zone or "UTC"
    computed = week_of(now, zone, workspace.week_start) if window == Limit.Window.WEEK else month_of(now, zone)
    before = accounts.filter(ends_at__lte=now).aggregate(end=Max("ends_at"))["end"]
    after = accounts.filter(starts_at__gt=now).aggregate(start=Min("starts_at"))["start"]
    return Window(max(computed.starts_at, before or computed.starts_at), min(computed.ends_at, after or computed.ends_at))


def funding(unit: str, window: str) -> int | None:
    """What a window is given: its hard stop, else what needs approval, else what warns; None without a limit."""
    amounts = dict(Limit.objects.filter(unit=unit, window=window).values_list("mode", "amount"))
    return next((amounts[mode] for mode in (Limit.Mode.STOP, Limit.Mode.APPROVAL, Limit.Mode.WARN) if mode in amounts), None)


def lock_ledger() -> Workspace:
    """Lock the ledger of the open workspace until the command commits. The workspace's own row stands for it; `no_key` leaves those in
    peace who only add rows that point at the workspace."""
    return Workspace.objects.select_for_update(no_key=True).get(pk=scope.current_id())


def locked(unit: str, window: str, starts_at: datetime) -> Accounts | None:
    """The accounts of the window that starts then, or None where none was opened."""
    rows = LedgerAccount.objects.select_for_update(no_key=True).filter(unit=unit, window=window, starts_at=starts_at).order_by("side")
    sides = {row.side: row for row in rows}
    return Accounts(sides[Side.SOURCE], sides[Side.AVAILABLE], sides[Side.RESERVED], sides[Side.SPENT]) if sides else None


def open_window(event: Draft, unit: str, window: str, now: datetime) -> Accounts:
    """The accounts of the window that `now` lies in, locked; made and funded at first use."""
    workspace = lock_ledger()
    span = window_at(workspace, window, now)
    accounts = locked(unit, window, span.starts_at)
    if accounts is not None:
        return accounts
    sides = (Side.SOURCE, Side.AVAILABLE, Side.RESERVED, Side.SPENT)
    rows = [LedgerAccount(unit=unit, window=window, starts_at=span.starts_at, ends_at=span.ends_at, side=side) for side in sides]
    LedgerAccount.objects.bulk_create(rows)
    event.created(*rows)
    accounts = Accounts(*rows)
    fund(event, accounts, funding(unit, window), reason="the window begins")
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
) -> None:
    """Take `amount` from the debit and give it to the credit, with its entry. Both are locked; nothing happens for 0."""
    if amount == 0:
        return
    event.changing(debit, credit)
    debit.balance -= amount
    credit.balance += amount
    debit.save(update_fields=["balance"])
    credit.save(update_fields=["balance"])
    entry = LedgerEntry(debit=debit, credit=credit, amount=amount, act=act, run_id=run_id, run_label=run_label[:200], reason=reason[:1000])
    entry.save(force_insert=True)
    event.created(entry)
