"""What stands against each limit now: used, reserved, free, until when. It only reads; a command that decides on it locks the ledger before."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import QuerySet, Sum

from workspaces import kept_query, scope
from workspaces.accounts import Side, window_at
from workspaces.models import Blob, LedgerAccount, Limit, Unit, Workspace
from workspaces.units import amount as amount_words
from workspaces.windows import Window, words

__all__ = ["CALENDAR", "NAMES", "SPANS", "Standing", "amount_words", "name_of", "questions", "standings"]

CALENDAR = (Limit.Window.WEEK, Limit.Window.MONTH)
NAMES = {
    Unit.GPU_MS: "GPU-hours",
    Unit.API_MICROS: "API spend",
    Unit.STORAGE_BYTES: "Storage",
    Unit.RUNS: "Runs",
    Unit.WALL_SECONDS: "Wall time",
    Unit.SLOTS: "Slots",
}
SPANS = {Limit.Window.RUN: "a run", Limit.Window.WEEK: "a week", Limit.Window.MONTH: "a month", Limit.Window.NOW: "at once"}


@dataclass(frozen=True, slots=True)
class Standing:
    """One limit and what stands against it. Amounts in the unit's integers; `free` is negative where more is committed than allowed."""

    name: str
    unit: str
    window: str
    amount: int
    mode: str
    used: int
    reserved: int
    until: str = ""  # end of the window in words, on the workspace's clock
    starts_at: datetime | None = None
    ends_at: datetime | None = None

    @property
    def free(self) -> int:
        return self.amount - self.used - self.reserved


def standings(
    *,
    now: datetime,
    runs_at_once: int | None = None,
    workspace: Workspace | None = None,
    units: Collection[str] | None = None,
    found: Sequence[list[Any]] | None = None,
) -> list[Standing]:
    """Every limit of the open workspace, or those on `units`, with what stands against it at `now`; a window that no run was entered in yet has
    nothing used. A fixed number of queries however many limits there are, but one for each on storage.

    How many runs are at work only the upper floor knows; without `runs_at_once` the limits on it are left out. `workspace` is the open one,
    where a page has it at hand, and `found` what `questions` has found.
    """
    if workspace is None:
        [workspace] = kept_query.rows(Workspace, pk=scope.current_id())
    limits, accounts = found or kept_query.ask_together(questions(now=now, units=units))
    windows, balances = _kept(workspace, {limit.window for limit in limits if limit.window in CALENDAR}, now, accounts)
    standing = []
    for limit in limits:
        used = reserved = 0
        window: Window | None = None
        if limit.window in CALENDAR:
            window = windows[limit.window]
            used, reserved = (balances.get((limit.unit, limit.window, side), 0) for side in (Side.SPENT, Side.RESERVED))
        elif limit.unit == Unit.STORAGE_BYTES:
            used = int(Blob.objects.filter(removed_at=None).aggregate(total=Sum("bytes"))["total"] or 0)
        elif limit.unit == Unit.RUNS:
            if runs_at_once is None:
                continue
            used = runs_at_once
        standing.append(
            Standing(
                name=name_of(limit.unit, limit.window),
                unit=limit.unit,
                window=limit.window,
                amount=limit.amount,
                mode=limit.mode,
                used=used,
                reserved=reserved,
                until=words(window.ends_at, workspace.zone or "UTC", now) if window else "",
                starts_at=window.starts_at if window else None,
                ends_at=window.ends_at if window else None,
            )
        )
    return standing


def questions(*, now: datetime, units: Collection[str] | None = None) -> list[kept_query.Question]:
    """What `standings` asks, for one who asks for more in the same round trip."""
    wanted = tuple(sorted(Unit if units is None else units))
    return [kept_query.Question(_limits, (wanted,), {}), kept_query.Question(_accounts, (tuple(sorted(CALENDAR)),), {"now": now})]


def name_of(unit: str, window: str) -> str:
    """How pages and certificates name a limit: `GPU-hours a week`, `Runs at once`, `Storage`."""
    name = NAMES[Unit(unit)]
    return name if unit == Unit.STORAGE_BYTES else f"{name} {SPANS[Limit.Window(window)]}"


def _limits(units: Collection[str]) -> "QuerySet[Limit]":
    return Limit.objects.filter(unit__in=units).order_by("unit", "window", "-amount", "mode")


def _accounts(spans: Collection[str], now: Any) -> "QuerySet[Any, Any]":
    rows = LedgerAccount.objects.filter(window__in=spans, starts_at__lte=now, ends_at__gt=now)
    return rows.values_list("unit", "window", "side", "balance", "starts_at", "ends_at")


def _kept(
    workspace: Workspace, spans: set[str], now: datetime, rows: Iterable[tuple[Any, ...]]
) -> tuple[dict[str, Window], dict[tuple[str, str, str], int]]:
    """The windows of the calendar at `now`, as far as limits ask for them, and the balances that are kept in them by unit, window and side."""
    windows, balances = {}, {}
    for unit, span, side, balance, starts_at, ends_at in rows:
        windows[span] = Window(starts_at, ends_at)
        balances[unit, span, side] = balance
    for span in spans - windows.keys():  # nothing was entered in it yet
        windows[span] = window_at(workspace, span, now)
    return windows, balances
