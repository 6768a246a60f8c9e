"""Who waits for a pool, in which place, and why in words."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count, F, Q, Sum
from django.utils import timezone

from runs.lifecycle import ACTIVE, OPEN_ATTEMPTS
from runs.models import Attempt, QueueItem, Run
from runs.queries.at_once import AtOnce, runs_at_once
from workspaces.models import Pool
from workspaces.units import duration

SHOWN = 500
RUN_SHOWN = ("name", "slots", "queued_at", "reserved_gpu_ms", "requested_by__username", "requested_by__display_name")
POOL_SHOWN = ("slug", "slots", "is_accepting", "engine_id")
ENGINE = ("slug", "slots", "is_accepting")


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
    position_key: int


@dataclass(frozen=True, slots=True)
class _Room:
    """How full a pool is, and which of its runs is bound to end first."""

    pool: Pool
    taken: int
    engine_taken: int
    first_to_end: Run | None
    ends_by: datetime | None


def waiting_runs(limit: int = SHOWN) -> list[Waiting]:
    """The queue in the order in which it starts, a fixed number of queries however long it is."""
    shown = [
        *(f"run__{name}" for name in RUN_SHOWN),
        *(f"pool__{name}" for name in POOL_SHOWN),
        *(f"pool__engine__{name}" for name in ENGINE),
    ]
    items = list(
        QueueItem.objects.select_related("run__requested_by", "pool__engine")
        .only("run_id", "pool_id", "priority", "position_key", *shown)
        .order_by("pool__slug", "-priority", "position_key")[:limit]
    )
    if not items:
        return []
    rooms = _rooms({item.pool_id: item.pool for item in items})
    at_once = runs_at_once()
    places: dict[object, int] = {}
    found = []
    for item in items:
        place = places[item.pool_id] = places.get(item.pool_id, 0) + 1
        reason, release = _why(item, place, rooms[item.pool_id], at_once)
        found.append(Waiting(item.run, item.pool, place, item.priority, item.run.queued_at, reason, release, item.position_key))
    return found


def _why(item: QueueItem, place: int, room: _Room, at_once: AtOnce) -> tuple[str, str]:
    """The first thing that stands in the way, and what would take it away."""
    pool, slots = room.pool, item.run.slots
    if not pool.is_accepting or not pool.engine.is_accepting:
        return f"{pool.slug} takes no new work.", "It starts once an operator opens the pool again."
    if slots > pool.slots:
        return (
            f"It needs {slots} slots and {pool.slug} has {pool.slots}.",
            "It starts once the pool has more slots; or launch it on another.",
        )
    if at_once.is_full:
        return at_once.words, f"It starts when one of them ends; {_next(room)}."
    if room.taken + slots > pool.slots:
        return (
            f"{room.taken} of {pool.slots} slots of {pool.slug} are taken.",
            f"It starts when {_slots(room.taken + slots - pool.slots)} free; {_next(room)}.",
        )
    if room.engine_taken + slots > pool.engine.slots:
        return (
            f"{room.engine_taken} of {pool.engine.slots} places of {pool.engine.slug} are taken, by this workspace and others.",
            "It starts when one is free.",
        )
    if place > 1:
        return f"{place - 1} {'runs go' if place > 2 else 'run goes'} first on {pool.slug}.", "It starts in its turn."
    return "It is next.", "It starts within seconds."


def _next(room: _Room) -> str:
    if room.first_to_end is None or room.ends_by is None:
        return "no end is known"
    seconds = (room.ends_by - timezone.now()).total_seconds()
    name = room.first_to_end.name[:60]
    return f"{name} ends within {duration(seconds)} at the latest" if seconds > 0 else f"{name} is bound to end now"


def _slots(count: int) -> str:
    return "a slot is" if count == 1 else f"{count} slots are"


def _rooms(pools: dict[object, Pool]) -> dict[object, _Room]:
    taken = dict(
        Attempt.objects.filter(pool__in=list(pools), status__in=sorted(OPEN_ATTEMPTS))
        .order_by()
        .values_list("pool")
        .annotate(slots=Sum("run__slots"))
    )
    engines = Pool.objects.filter(pk__in=list(pools)).order_by().values_list("engine")
    held = dict(engines.annotate(count=Count("engine__held_slots", distinct=True)))
    active = Run.objects.filter(pool__in=list(pools), status__in=sorted(ACTIVE)).exclude(Q(started_at=None))
    running = list(active.only("name", "pool_id", "wall_seconds").annotate(begun=F("started_at")))
    rooms = {}
    for pool_id, pool in pools.items():
        ends = sorted(
            ((run.begun + timedelta(seconds=run.wall_seconds), run) for run in running if run.pool_id == pool_id), key=lambda pair: pair[0]
        )
        first = ends[0] if ends else None
        rooms[pool_id] = _Room(
            pool, taken.get(pool_id, 0), held.get(pool.engine_id, 0), first[1] if first else None, first[0] if first else None
        )
    return rooms
