"""What a limit that was lowered, or overspent, says to runs that were admitted before: those that no longer fit wait (feature 85). It only reads.

A run that waits holds its reservation, so the ledger alone cannot tell who goes first. Counted is what is spent and what runs at work hold: one
more starts while it fits into that, in the order of the queue, and never more than the limit allows.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import Q, Sum

from runs.models import QueueItem, Run
from workspaces.accounts import Side
from workspaces.models import LedgerEntry, Limit, Unit
from workspaces.standings import CALENDAR, Standing, amount_words

BINDING = (Limit.Mode.STOP, Limit.Mode.APPROVAL)


@dataclass(frozen=True, slots=True)
class Bound:
    """A limit that may keep queued runs waiting. `at_work`: what is spent in its window and held by runs that have started; 0 for one run."""

    standing: Standing
    at_work: int

    def excess(self, run: Run) -> str:
        """Why a run does not fit any more, in a sentence with the arithmetic; empty where it does."""
        limit, asked = self.standing, amount_of(run, self.standing.unit)
        if asked == 0 or self.at_work + asked <= limit.amount:
            return ""
        held, allowed = amount_words(asked, limit.unit), amount_words(limit.amount, limit.unit)
        if limit.window == Limit.Window.RUN:
            return f"{limit.name}: it asks for {held}, and {allowed} are allowed by now."
        total = amount_words(self.at_work + asked, limit.unit)
        return f"{limit.name}: its {held} would make {total} of {allowed}, with what is spent and what runs at work hold."

    @property
    def release(self) -> str:
        """What would let it start."""
        limit = self.standing
        over = "" if limit.mode == Limit.Mode.STOP else "; or cancel it and launch it again, which asks an approver"
        if limit.window == Limit.Window.RUN:
            return f"It starts once the limit is raised{over or '; or cancel it and ask for less'}."
        return f"It starts once the limit is raised, runs at work give enough back, or from {limit.until}{over}."


def bounds(limits: Iterable[Standing]) -> list[Bound]:
    """Limits that bind, of those that stand now: per run always, of a window only where more is committed than it allows. Two queries for each
    window that is over its limit, none otherwise."""
    found = []
    for limit in limits:
        if limit.mode not in BINDING:
            continue
        if limit.window == Limit.Window.RUN:
            found.append(Bound(limit, 0))
        elif limit.window in CALENDAR and limit.free < 0:
            found.append(Bound(limit, limit.used + limit.reserved - _held_by_waiting(limit)))
    return found


def approved(found: Iterable[Bound]) -> frozenset[object]:
    """Queued runs that a person has agreed to, which limits that ask for approval let pass; not asked where there is no such limit."""
    if not any(bound.standing.mode == Limit.Mode.APPROVAL for bound in found):
        return frozenset()
    queued = Run.objects.filter(queue_items__isnull=False, certificate__facts__is_approved=True)
    return frozenset(queued.order_by().values_list("pk", flat=True))


def amount_of(run: Run, unit: str) -> int:
    """What a queued run holds of a unit that one run may be limited in; 0 of any other."""
    amounts: dict[str, int] = {
        Unit.GPU_MS: run.reserved_gpu_ms,
        Unit.API_MICROS: run.reserved_api_micros,
        Unit.WALL_SECONDS: run.wall_seconds,
        Unit.SLOTS: run.slots,
    }
    return amounts.get(unit, 0)


def _held_by_waiting(limit: Standing) -> int:
    """What runs of the queue hold of a window."""
    waiting = LedgerEntry.objects.filter(run_id__in=QueueItem.objects.order_by().values("run_id")).order_by()
    held = 0
    for side, sign in (("credit", 1), ("debit", -1)):
        accounts = {"side": Side.RESERVED, "unit": limit.unit, "window": limit.window, "starts_at": limit.starts_at}
        rows = waiting.filter(Q(**{f"{side}__{name}": value for name, value in accounts.items()}))
        held += sign * (rows.aggregate(total=Sum("amount"))["total"] or 0)
    return held
