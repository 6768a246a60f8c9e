"""Entries of the ledger as people read them, and the recount that proves it."""

import uuid
from dataclasses import dataclass
from datetime import datetime

from django.db.models import F, OuterRef, QuerySet, Subquery, Sum, Value
from django.db.models.functions import Coalesce

from workspaces.ids import canonical
from workspaces.models import LedgerAccount, LedgerEntry
from workspaces.standings import amount_words


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
    LedgerEntry.Act.FUND: "limit set",
    LedgerEntry.Act.RESERVE: "reserved",
    LedgerEntry.Act.SPEND: "spent",
    LedgerEntry.Act.RELEASE: "given back",
    LedgerEntry.Act.OVERRUN: "beyond the reservation",
    LedgerEntry.Act.MOVE: "into the next window",
}


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
        words=WORDS[LedgerEntry.Act(entry.act)],
        amount=amount_words(entry.amount, debit.unit),
        run_ref=canonical("run", None, entry.run_id) if entry.run_id else "",
    )


@dataclass(frozen=True, slots=True)
class Miscount:
    """What does not add up: a balance that is not the sum of its entries, or a unit whose balances do not sum to zero."""

    what: str
    unit: str
    starts_at: datetime | None
    balance: int
    counted: int


def entries(*, unit: str = "", run_id: uuid.UUID | None = None) -> "QuerySet[LedgerEntry]":
    """Entries with their accounts; order and page are the caller's."""
    rows = LedgerEntry.objects.select_related("debit", "credit")
    if unit:
        rows = rows.filter(debit__unit=unit)
    return rows.filter(run_id=run_id) if run_id else rows


def recount() -> list[Miscount]:
    """Count the open workspace's ledger anew from its entries; empty where everything adds up."""
    given = LedgerEntry.objects.filter(credit=OuterRef("pk")).order_by().values("credit").annotate(total=Sum("amount")).values("total")
    taken = LedgerEntry.objects.filter(debit=OuterRef("pk")).order_by().values("debit").annotate(total=Sum("amount")).values("total")
    counted = LedgerAccount.objects.annotate(counted=Coalesce(Subquery(given), Value(0)) - Coalesce(Subquery(taken), Value(0)))
    wrong = [
        Miscount(account.label, account.unit, account.starts_at, account.balance, int(account.counted))
        for account in counted.exclude(balance=F("counted")).order_by("unit", "starts_at", "side")
    ]
    crossing = LedgerEntry.objects.exclude(debit__unit=F("credit__unit")).count()
    if crossing:
        wrong.append(Miscount("entries between two units", "", None, crossing, 0))
    for row in LedgerAccount.objects.order_by().values("unit").annotate(total=Sum("balance")):
        if row["total"]:
            wrong.append(Miscount("sum of all balances", row["unit"], None, int(row["total"]), 0))
    return wrong
