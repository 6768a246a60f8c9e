"""Who waits for a pool, in which place, and why in words."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db.models import Count, Q, QuerySet
from django.utils import timezone

from runs.models import QueueItem, Run
from runs.queries.share import turns
from runs.queries.start import Grounds, conditions, launchers, rooms, with_grounds
from runs.start import Holds, Waits
from workspaces import kept_query
from workspaces.models import Pool, Workspace

SHOWN = 500
RUN_SHOWN = (
    "name", "slots", "wall_seconds", "queued_at", "reserved_gpu_ms", "reserved_api_micros", "budget_window_at", "requested_by__username",
    "requested_by__display_name",
)  # fmt: skip
POOL_SHOWN = ("slug", "slots", "is_accepting", "isolation", "engine_id", "closed_reason", "closed_by__username", "closed_by__display_name")
ENGINE = ("slug", "slots", "is_accepting")
NEXT = Waits(Holds.RUN, "It is next.", "It starts within seconds.")


@dataclass(frozen=True, slots=True)
class Waiting:
    """One queued run. `place` counts within its pool from 1; `reason` says why not yet, `release` what would start it."""

    run: Run
    pool: Pool
    place: int
    priority: int
    since: datetime | None
    reason: str
    release: str
    needs_somebody: bool
    position_key: int


def waiting_runs(limit: int = SHOWN) -> list[Waiting]:
    """The queue in the order in which it starts; a fixed number of queries however long it is."""
    items = list(_items().order_by("pool__slug", "-priority", "position_key")[:limit])
    if not items:
        return []
    room = rooms([item.pool for item in items], says_ends=True, turns=turns(item.pool.engine_id for item in items))
    now = conditions(timezone.now(), launchers({item.run.requested_by_id for item in items}))
    places: dict[object, int] = {}
    ahead: dict[object, int] = {}  # runs that start before: those that wait for something of their own are passed
    found = []
    for item in items:
        place = places[item.pool_id] = places.get(item.pool_id, 0) + 1
        waits = now.waits(item.run, Grounds.of(item), room[item.pool_id])
        first = ahead.get(item.pool_id, 0)
        ahead[item.pool_id] = first + _goes_first(waits)
        found.append(_waiting(item, place, waits or _in_turn(first, item.pool)))
    return found


def waiting_of(run: Run, workspace: Workspace) -> Waiting | None:
    """One queued run as `waiting_runs` has it, in few queries however long the queue is; None where it does not wait."""
    items = kept_query.ask(_item_of, run=run.pk)
    if not items:
        return None
    item = items[0]
    stands = {"pool": item.pool_id, "priority": item.priority, "position_key": item.position_key}
    ahead = sum(count for _, count in kept_query.ask(_count_before, **stands))
    room = rooms([item.pool], says_ends=True)[item.pool_id]
    now = conditions(timezone.now(), launchers({item.run.requested_by_id}), workspace=workspace)
    place, waits, first = ahead + 1, now.waits(item.run, Grounds.of(item), room), 0
    if waits is None:  # only others are in its way: other workspaces, whom the rule asks about last, or runs before it
        room = replace(room, turn=turns([item.pool.engine_id]).get(item.pool.engine_id))
        waits = now.waits(item.run, Grounds.of(item), room)
    if waits is None and place > 1:
        before = _before(**stands).order_by("-priority", "position_key")
        others = list(_items().filter(pk__in=before.values("pk")[:SHOWN]))
        may_launch = launchers({other.run.requested_by_id for other in others})
        now = replace(now, may_launch=may_launch)
        first = place - 1 - sum(not _goes_first(now.waits(other.run, Grounds.of(other), room)) for other in others)
    return _waiting(item, place, waits or _in_turn(first, item.pool))


def _item_of(run: Any) -> "QuerySet[QueueItem]":
    return _items().filter(run=run)


def _before(pool: Any, priority: Any, position_key: Any) -> "QuerySet[QueueItem]":
    """What starts before a place in a pool's queue."""
    return QueueItem.objects.filter(pool=pool).filter(Q(priority__gt=priority) | Q(priority=priority, position_key__lt=position_key))


def _count_before(**stands: Any) -> "QuerySet[Any, Any]":
    return _before(**stands).order_by().values_list("pool").annotate(Count("pk"))


def _items() -> QuerySet[Any]:
    """Queue items with what the start rule and the pages want of their runs and pools."""
    shown = [
        *(f"run__{name}" for name in RUN_SHOWN),
        *(f"pool__{name}" for name in POOL_SHOWN),
        *(f"pool__engine__{name}" for name in ENGINE),
    ]
    related = QueueItem.objects.select_related("run__requested_by", "pool__engine", "pool__closed_by")
    return with_grounds(related.only("run_id", "pool_id", "priority", "position_key", *shown), run="run")


def _goes_first(waits: Waits | None) -> bool:
    """Does it start before those behind it?"""
    return waits is None or waits.holds != Holds.RUN


def _in_turn(first: int, pool: Pool) -> Waits:
    """Nothing but runs before it is in its way."""
    if not first:
        return NEXT
    return Waits(Holds.RUN, f"{first} {'runs go' if first > 1 else 'run goes'} first on {pool.slug}.", "It starts in its turn.")


def _waiting(item: QueueItem, place: int, waits: Waits) -> Waiting:
    return Waiting(
        item.run, item.pool, place, item.priority, item.run.queued_at, waits.reason, waits.release, waits.needs_somebody, item.position_key
    )
