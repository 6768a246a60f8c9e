"""Who waits for a pool, in which place, and why in words; page by page, however long the queue is."""

import uuid
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db.models import Count, OuterRef, Q, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce
from django.utils import timezone

from runs.models import QueueItem, Run
from runs.queries.share import turns
from runs.queries.start import Conditions, Grounds, conditions, launchers, rooms, with_grounds
from runs.start import Holds, Room, Waits
from workspaces import kept_query
from workspaces.models import Pool, Workspace
from workspaces.queries.paging import NOT_OURS, BadCursor, Page, Place, cut, read_place
from workspaces.text import is_storable

SHOWN = 200  # on a page
OWN_SHOWN = 20  # of the reader's own, apart
LOOKED_AT = 500  # runs before one that are looked at for some that it passes
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


@dataclass(frozen=True, slots=True)
class InPool:
    """How many runs wait for a pool, and how many of them are the reader's own."""

    slug: str
    count: int
    own: int


def waiting_runs(*, pool: str = "", cursor: str = "", size: int = SHOWN) -> Page[Waiting]:
    """The queue in the order in which it starts, of all pools or of one; a fixed number of queries however long it is. Raises BadCursor."""
    rows = _items().order_by("pool__slug", "-priority", "position_key", "run_id")
    if pool:
        rows = rows.filter(pool__slug=pool)
    if cursor:
        rows = rows.filter(_after(cursor))
    page = cut(list(rows[: size + 1]), _place, size=size)
    return Page(_all_waiting(page.items, goes_on=bool(cursor)), page.next)


def _all_waiting(items: list[QueueItem], *, goes_on: bool) -> list[Waiting]:
    """Items of the queue that stand next to each other; `goes_on`: others may stand before the first."""
    if not items:
        return []
    room = rooms([item.pool for item in items], says_ends=True, turns=turns(item.pool.engine_id for item in items))
    now = conditions(timezone.now(), launchers({item.run.requested_by_id for item in items}))
    places: dict[object, int] = {}
    ahead: dict[object, int] = {}  # runs that start before: those that wait for something of their own are passed
    if goes_on:
        first = items[0]
        places[first.pool_id] = before = _count_ahead(first)
        ahead[first.pool_id] = before - _passed(first, now, room[first.pool_id]) if before else 0
    found = []
    for item in items:
        place = places[item.pool_id] = places.get(item.pool_id, 0) + 1
        waits = now.waits(item.run, Grounds.of(item), room[item.pool_id])
        starts_before = ahead.get(item.pool_id, 0)
        ahead[item.pool_id] = starts_before + _goes_first(waits)
        found.append(_waiting(item, place, waits or _in_turn(starts_before, item.pool)))
    return found


def in_pools(person: uuid.UUID) -> list[InPool]:
    """How many wait for each pool for which any do, by its name."""
    return [InPool(*row) for row in kept_query.ask(_in_pools, person=person)]


def own_waiting(person: uuid.UUID) -> list[QueueItem]:
    """The first queued runs of a person, in the order of the queue, each with its `place` in its pool."""
    return kept_query.ask(_own, OWN_SHOWN, person=person)


def _in_pools(person: Any) -> "QuerySet[Any, Any]":
    own = Count("pk", filter=Q(run__requested_by=person))
    return QueueItem.objects.order_by("pool__slug").values_list("pool__slug").annotate(Count("pk"), own=own)


def _own(limit: int, person: Any) -> "QuerySet[QueueItem]":
    before = _count_before(pool=OuterRef("pool"), priority=OuterRef("priority"), position_key=OuterRef("position_key"))
    own = (
        QueueItem.objects.filter(run__requested_by=person)
        .select_related("run", "pool")
        .only("priority", "run__name", "run__queued_at", "pool__slug")
    )
    placed = own.annotate(place=Coalesce(Subquery(before.values("pk__count")), Value(0)) + 1)
    return placed.order_by("pool__slug", "-priority", "position_key", "run_id")[:limit]


def _place(item: QueueItem) -> Place:
    return (item.pool.slug, item.priority, item.position_key, item.run_id.hex)


def _after(cursor: str) -> Q:
    """What stands behind a place of the queue."""
    try:
        one, two, three, four = read_place(cursor)
        slug, priority, position_key, run = str(one), int(two), int(three), uuid.UUID(str(four))
    except (ValueError, OverflowError) as error:
        raise BadCursor(NOT_OURS) from error
    if not is_storable(slug):
        raise BadCursor(NOT_OURS)
    here = Q(pool__slug=slug)
    level = here & Q(priority=priority)
    behind = here & Q(priority__lt=priority) | level & Q(position_key__gt=position_key)
    return Q(pool__slug__gt=slug) | behind | level & Q(position_key=position_key, run_id__gt=run)


def waiting_of(run: Run, workspace: Workspace) -> Waiting | None:
    """One queued run as `waiting_runs` has it, in few queries however long the queue is; None where it does not wait."""
    items = kept_query.ask(_item_of, run=run.pk)
    if not items:
        return None
    item = items[0]
    ahead = _count_ahead(item)
    room = rooms([item.pool], says_ends=True)[item.pool_id]
    now = conditions(timezone.now(), launchers({item.run.requested_by_id}), workspace=workspace)
    place, waits, first = ahead + 1, now.waits(item.run, Grounds.of(item), room), 0
    if waits is None:  # only others are in its way: other workspaces, whom the rule asks about last, or runs before it
        room = replace(room, turn=turns([item.pool.engine_id]).get(item.pool.engine_id))
        waits = now.waits(item.run, Grounds.of(item), room)
    if waits is None and place > 1:
        first = ahead - _passed(item, now, room)
    return _waiting(item, place, waits or _in_turn(first, item.pool))


def _item_of(run: Any) -> "QuerySet[QueueItem]":
    return _items().filter(run=run)


def _before(pool: Any, priority: Any, position_key: Any) -> "QuerySet[QueueItem]":
    """What starts before a place in a pool's queue."""
    return QueueItem.objects.filter(pool=pool).filter(Q(priority__gt=priority) | Q(priority=priority, position_key__lt=position_key))


def _count_ahead(item: QueueItem) -> int:
    return sum(count for _, count in kept_query.ask(_count_before, **_stands(item)))


def _passed(item: QueueItem, now: Conditions, room: Room) -> int:
    """How many of those before it wait for something of their own; of a very long queue the first are looked at."""
    before = _before(**_stands(item)).order_by("-priority", "position_key")
    others = list(_items().filter(pk__in=before.values("pk")[:LOOKED_AT]))
    now = replace(now, may_launch=launchers({other.run.requested_by_id for other in others}))
    return sum(not _goes_first(now.waits(other.run, Grounds.of(other), room)) for other in others)


def _stands(item: QueueItem) -> dict[str, Any]:
    return {"pool": item.pool_id, "priority": item.priority, "position_key": item.position_key}


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
