"""Entries of the ledger as people read them, and the recount that proves it."""

import uuid
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from django.db.models import Exists, F, OuterRef, Q, QuerySet, Subquery, Sum, Value
from django.db.models.functions import Coalesce

from workspaces.ids import canonical
from workspaces.models import LedgerAccount, LedgerEntry, Unit
from workspaces.queries.paging import Page, newest_first
from workspaces.standings import amount_words
from workspaces.units import figure


@dataclass(frozen=True, slots=True)
class EntryRow:
    """One transfer in words: from which side to which, of which window, for which run."""

    entry: LedgerEntry
    unit: str
    window: str
    starts_at: datetime
    debit: str
    credit: str
    words: str
    amount: str
    run_ref: str


WORDS = {
    LedgerEntry.Act.FUND: "given by the limit",
    LedgerEntry.Act.RESERVE: "reserved",
    LedgerEntry.Act.SPEND: "spent",
    LedgerEntry.Act.RELEASE: "given back",
    LedgerEntry.Act.OVERRUN: "beyond the reservation",
    LedgerEntry.Act.MOVE: "into the next window",
    LedgerEntry.Act.EXTERNAL: "entered from outside",
}
TAKEN = "taken back by the limit"  # a smaller limit: the entry runs the other way


def entry_row(entry: LedgerEntry) -> EntryRow:
    """The row of an entry that came with its accounts."""
    debit, credit = entry.debit, entry.credit
    return EntryRow(
        entry=entry,
        unit=debit.unit,
        window=debit.window,
        starts_at=debit.starts_at,
        debit=debit.side,
        credit=credit.side,
        words=TAKEN if entry.act == LedgerEntry.Act.FUND and credit.side == "source" else WORDS[LedgerEntry.Act(entry.act)],
        amount=amount_words(entry.amount, debit.unit),
        run_ref=canonical("run", None, entry.run_id) if entry.run_id else "",
    )


@dataclass(frozen=True, slots=True)
class Line:
    """What one run did to one unit of one kind of window, or an entry that belongs to no run. Amounts in the unit's integers.

    `reserved` counts what was promised, without what was carried into a later window; `spent` what was used, overrun included.
    """

    entries: list[EntryRow]  # oldest first
    reserved: int
    spent: int
    overrun: int
    released: int
    outside: int  # of what is spent, entered beside labsite

    @property
    def newest(self) -> EntryRow:
        return self.entries[-1]

    @property
    def is_open(self) -> bool:
        """Does a reservation of it still stand?"""
        return self.reserved > self.spent - self.overrun - self.outside + self.released

    @property
    def reserved_figure(self) -> str:
        return _figure(self.reserved, self.newest.unit)

    @property
    def spent_figure(self) -> str:
        return _figure(self.spent, self.newest.unit)

    @property
    def released_figure(self) -> str:
        return _figure(self.released, self.newest.unit)


def _figure(amount: int, unit: str) -> str:
    """An amount without its unit, which stands in the column's head; "" for nothing."""
    return figure(amount, unit) if amount else ""


def lines(*, unit: str = Unit.GPU_MS, cursor: str = "", size: int = 50) -> Page[Line]:
    """What runs did to a unit, run by run, that with the newest entry first: two queries, whatever their number of entries. Raises BadCursor."""
    later = LedgerEntry.objects.filter(
        Q(created_at__gt=OuterRef("created_at")) | Q(created_at=OuterRef("created_at"), pk__gt=OuterRef("pk")),
        run_id=OuterRef("run_id"),
        debit__unit=OuterRef("debit__unit"),
        debit__window=OuterRef("debit__window"),
    )
    page = newest_first(entries(unit=unit).filter(~Exists(later)), cursor=cursor, size=size)
    runs = {entry.run_id for entry in page.items if entry.run_id}
    parts: dict[object, list[LedgerEntry]] = {}
    for entry in entries(unit=unit).filter(run_id__in=runs).order_by("created_at", "pk"):
        parts.setdefault(_key(entry), []).append(entry)
    return Page([_line(parts.get(_key(entry), [entry])) for entry in page.items], page.next)


def _key(entry: LedgerEntry) -> object:
    return (entry.run_id, entry.debit.unit, entry.debit.window) if entry.run_id else entry.pk


def _line(found: list[LedgerEntry]) -> Line:
    def total(*acts: LedgerEntry.Act) -> int:
        return sum(entry.amount for entry in found if entry.act in acts)

    act = LedgerEntry.Act
    outside = sum(entry.amount if entry.credit.side == "spent" else -entry.amount for entry in found if entry.act == act.EXTERNAL)
    return Line(
        entries=[entry_row(entry) for entry in found],
        reserved=total(act.RESERVE),
        spent=total(act.SPEND, act.OVERRUN) + outside,
        overrun=total(act.OVERRUN),
        outside=outside,
        released=total(act.RELEASE),
    )


@dataclass(frozen=True, slots=True)
class Miscount:
    """What does not add up: a balance that is not the sum of its entries, or a unit whose balances do not sum to zero."""

    what: str
    unit: str
    starts_at: datetime | None
    balance: int
    counted: int

    def as_json(self) -> dict[str, Any]:
        """As a recount keeps it, and `manage.py recount --json` prints it."""
        return {**asdict(self), "starts_at": self.starts_at.isoformat() if self.starts_at else None}


def entries(*, unit: str = "", run_id: uuid.UUID | None = None) -> "QuerySet[LedgerEntry]":
    """Entries with their accounts; order and page are the caller's."""
    rows = LedgerEntry.objects.select_related("debit", "credit")
    if unit:
        rows = rows.filter(debit__unit=unit)
    return rows.filter(run_id=run_id) if run_id else rows


def miscounted() -> "QuerySet[Any]":
    """Accounts whose balance is not the sum of their entries, which each bears as `counted`."""
    given = LedgerEntry.objects.filter(credit=OuterRef("pk")).order_by().values("credit").annotate(total=Sum("amount")).values("total")
    taken = LedgerEntry.objects.filter(debit=OuterRef("pk")).order_by().values("debit").annotate(total=Sum("amount")).values("total")
    counted = LedgerAccount.objects.annotate(counted=Coalesce(Subquery(given), Value(0)) - Coalesce(Subquery(taken), Value(0)))
    return counted.exclude(balance=F("counted")).order_by("unit", "starts_at", "side")


def recount() -> list[Miscount]:
    """Count the open workspace's ledger anew from its entries; empty where everything adds up."""
    wrong = [
        Miscount(account.label, account.unit, account.starts_at, account.balance, int(account.counted)) for account in miscounted()
    ]  # fmt: skip
    crossing = LedgerEntry.objects.exclude(debit__unit=F("credit__unit")).count()
    if crossing:
        wrong.append(Miscount("entries between two units", "", None, crossing, 0))
    for row in LedgerAccount.objects.order_by().values("unit").annotate(total=Sum("balance")):
        if row["total"]:
            wrong.append(Miscount("sum of all balances", row["unit"], None, int(row["total"]), 0))
    return wrong
