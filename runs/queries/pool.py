"""One pool: can it take work? What runs on it, what waits for it, and when it last answered."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, Max, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce

from runs.lifecycle import OPEN_ATTEMPTS
from runs.models import Attempt, QueueItem, Watch
from workspaces import kept_query
from workspaces.models import Engine, EngineSlot, Pool

SHOWN = 200  # attempts of one pool


@dataclass(frozen=True, slots=True)
class PoolState:
    """`taken` of the pool's slots by this workspace; `engine_taken` of the engine's by all. `contact_at`: the last time it was observed."""

    pool: Pool
    engine: Engine
    attempts: list[Attempt]
    taken: int
    engine_taken: int
    waiting: int
    contact_at: datetime | None
    silent: int  # open attempts whose last observation was no answer

    @property
    def takes_work(self) -> bool:
        return self.pool.is_accepting and self.engine.is_accepting

    @property
    def free(self) -> int:
        """Slots that an attempt could take now."""
        return max(0, min(self.pool.slots - self.taken, self.engine.slots - self.engine_taken)) if self.takes_work else 0


def pool_state(pool: Pool) -> PoolState:
    related = ("run__agent", "run__requested_by")
    attempts = kept_query.rows(
        Attempt, pool=pool, status__in=sorted(OPEN_ATTEMPTS), related=related, order_by=("created_at", "pk"), limit=SHOWN
    )  # fmt: skip
    taken = sum(attempt.run.slots for attempt in attempts) if len(attempts) < SHOWN else _taken(pool)
    [(engine_taken, waiting, contact_at, silent)] = kept_query.ask(_figures, pool=pool.pk, engine=pool.engine_id)
    return PoolState(
        pool=pool,
        engine=pool.engine,
        attempts=attempts,
        taken=taken,
        engine_taken=engine_taken,
        waiting=waiting,
        contact_at=contact_at,
        silent=silent,
    )


def _taken(pool: Pool) -> int:
    held = Attempt.objects.filter(pool=pool, status__in=sorted(OPEN_ATTEMPTS))
    return int(held.aggregate(total=Sum("run__slots"))["total"] or 0)


def _figures(pool: Any, engine: Any) -> "QuerySet[Any, Any]":
    """Places taken of the engine, runs that wait, when it was last observed, and how many attempts did not answer; in one statement."""
    seen = Watch.objects.filter(attempt__pool=pool)
    silent = seen.filter(attempt__status__in=sorted(OPEN_ATTEMPTS), observed="unknown")
    return Pool.objects.filter(pk=pool).values_list(
        _count(EngineSlot.objects.filter(engine=engine), "engine"),
        _count(QueueItem.objects.filter(pool=pool), "pool"),
        Subquery(seen.exclude(observed="unknown").order_by().values("attempt__pool").annotate(last=Max("observed_at")).values("last")),
        _count(silent, "attempt__pool"),
    )


def _count(rows: "QuerySet[Any]", of: str) -> Coalesce:
    return Coalesce(Subquery(rows.order_by().values(of).annotate(count=Count("pk")).values("count")), 0)
