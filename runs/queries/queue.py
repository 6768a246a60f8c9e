"""Who waits for a pool, in which place, and why in words."""

import uuid
from dataclasses import dataclass
from datetime import datetime

from django.utils import timezone

from runs.models import QueueItem, Run
from runs.queries.share import turns
from runs.queries.start import ITS_RUN_ADMITTED_ON, conditions, rooms
from runs.start import Holds, Waits
from workspaces.models import Pool

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


def waiting_runs(limit: int = SHOWN, *, pool: uuid.UUID | None = None) -> list[Waiting]:
    """The queue in the order in which it starts, or that of one pool; a fixed number of queries however long it is."""
    shown = [
        *(f"run__{name}" for name in RUN_SHOWN),
        *(f"pool__{name}" for name in POOL_SHOWN),
        *(f"pool__engine__{name}" for name in ENGINE),
    ]
    of_pool = {} if pool is None else {"pool": pool}
    items = list(
        QueueItem.objects.filter(**of_pool)
        .select_related("run__requested_by", "pool__engine", "pool__closed_by")
        .only("run_id", "pool_id", "priority", "position_key", *shown)
        .annotate(isolation=ITS_RUN_ADMITTED_ON)
        .order_by("pool__slug", "-priority", "position_key")[:limit]
    )
    if not items:
        return []
    room = rooms([item.pool for item in items], says_ends=True, turns=turns(item.pool.engine_id for item in items))
    now = conditions(timezone.now())
    places: dict[object, int] = {}
    ahead: dict[object, int] = {}  # runs that start before: those that wait for something of their own are passed
    found = []
    for item in items:
        place = places[item.pool_id] = places.get(item.pool_id, 0) + 1
        waits = now.waits(item.run, item.isolation, room[item.pool_id])
        first = ahead.get(item.pool_id, 0)
        if waits is None and first:
            waits = Waits(
                Holds.RUN, f"{first} {'runs go' if first > 1 else 'run goes'} first on {item.pool.slug}.", "It starts in its turn."
            )
            ahead[item.pool_id] = first + 1
        elif waits is None or waits.holds != Holds.RUN:
            ahead[item.pool_id] = first + 1
        waits = waits or NEXT
        found.append(
            Waiting(
                item.run, item.pool, place, item.priority, item.run.queued_at, waits.reason, waits.release, waits.needs_somebody,
                item.position_key,
            )
        )  # fmt: skip
    return found
