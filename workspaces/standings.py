"""What stands against each limit now: used, reserved, free, until when. It only reads; a command that decides on it locks the ledger before."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Sum

from workspaces import scope
from workspaces.accounts import Side, window_at
from workspaces.models import Blob, LedgerAccount, Limit, Unit, Workspace
from workspaces.units import amount as amount_words
from workspaces.windows import Window, words

__all__ = ["CALENDAR", "NAMES", "SPANS", "Standing", "amount_words", "name_of", "standings"]

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
    *, now: datetime, runs_at_once: int | None = None, workspace: Workspace | None = None, spans: Collection[str] | None = None
) -> list[Standing]:
    """Every limit of the open workspace, or those on windows among `spans`, with what stands against it at `now`; a window that no run was
    entered in yet has nothing used.

    How many runs are at work only the upper floor knows; without `runs_at_once` the limits on it are left out. `workspace` is the open one,
    where a page has it at hand.
    """
    workspace = workspace or Workspace.objects.get(pk=scope.current_id())
    found = []
    kept: dict[tuple[str, str], tuple[int, int, Window]] = {}
    limits = Limit.objects.all() if spans is None else Limit.objects.filter(window__in=list(spans))
    for limit in limits.order_by("unit", "window", "-amount", "mode"):
        used = reserved = 0
        window: Window | None = None
        if limit.window in CALENDAR:
            key = (limit.unit, limit.window)
            if key not in kept:
                kept[key] = _kept(workspace, limit.unit, limit.window, now)
            used, reserved, window = kept[key]
        elif limit.unit == Unit.STORAGE_BYTES:
            used = int(Blob.objects.aggregate(total=Sum("bytes"))["total"] or 0)
        elif limit.unit == Unit.RUNS:
            if runs_at_once is None:
                continue
            used = runs_at_once
        found.append(
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
    return found


def name_of(unit: str, window: str) -> str:
    """How pages and certificates name a limit: `GPU-hours a week`, `Runs at once`, `Storage`."""
    name = NAMES[Unit(unit)]
    return name if unit == Unit.STORAGE_BYTES else f"{name} {SPANS[Limit.Window(window)]}"


def _kept(workspace: Workspace, unit: str, window: str, now: datetime) -> tuple[int, int, Window]:
    """Spent and reserved of a window, and the window."""
    span = window_at(workspace, window, now)
    rows = LedgerAccount.objects.filter(unit=unit, window=window, starts_at=span.starts_at)
    balances = dict(rows.values_list("side", "balance"))
    return balances.get(Side.SPENT, 0), balances.get(Side.RESERVED, 0), span
