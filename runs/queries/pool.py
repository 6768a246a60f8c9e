"""One pool: can it take work? What runs on it, what waits for it, and when it last answered."""

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Max, Q, Sum

from runs.lifecycle import OPEN_ATTEMPTS
from runs.models import Attempt, QueueItem, Watch
from workspaces.models import Engine, EngineSlot, Pool


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
    open_attempts = Attempt.objects.filter(pool=pool, status__in=sorted(OPEN_ATTEMPTS))
    attempts = list(open_attempts.select_related("run__agent", "run__requested_by").order_by("created_at", "pk")[:200])
    seen = Watch.objects.filter(attempt__pool=pool)
    return PoolState(
        pool=pool,
        engine=pool.engine,
        attempts=attempts,
        taken=int(open_attempts.aggregate(total=Sum("run__slots"))["total"] or 0),
        engine_taken=EngineSlot.objects.filter(engine=pool.engine).count(),
        waiting=QueueItem.objects.filter(pool=pool).count(),
        contact_at=seen.aggregate(last=Max("observed_at", filter=~Q(observed="unknown")))["last"],
        silent=seen.filter(attempt__in=open_attempts, observed="unknown").count(),
    )
