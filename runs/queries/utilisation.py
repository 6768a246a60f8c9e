"""What runs under way use: slots of each pool, and the process trees' CPU and memory and the machines' GPUs as last sampled.

What nobody has measured is None, never 0.
"""

import uuid
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Avg, Count, Q, QuerySet, Sum

from runs.lifecycle import ACTIVE, OPEN_ATTEMPTS
from runs.models import Attempt, MetricSeries
from runs.pools.sampling import PREFIX
from runs.queries.pool_contact import Contact, with_contact
from workspaces import kept_query
from workspaces.models import Pool
from workspaces.units import number, size

CPU, MEMORY = f"{PREFIX}cpu_percent", f"{PREFIX}memory_bytes"
GPU = rf"^{PREFIX}gpu_\d+_percent$"  # of each GPU of the machine, whoever uses it
MEASURED = Q(last__gte=0, last__lt=float("inf"))
ABSENT = "not measured"
POOL = ("slug", "slots", "is_accepting", "engine__is_accepting", "engine__gpu_kind")


@dataclass(frozen=True, slots=True)
class PoolUse:
    """`taken` of the pool's slots by `running` runs; of `measured` of them there are samples. `gpu_percent` is the mean of `gpus` GPUs."""

    pool: Pool
    taken: int = 0
    running: int = 0
    measured: int = 0
    cores: float | None = None
    memory_bytes: int | None = None
    gpu_percent: float | None = None
    gpus: int = 0

    @property
    def is_open(self) -> bool:
        return self.pool.is_accepting and self.pool.engine.is_accepting

    @property
    def contact(self) -> Contact:
        """Of a pool of `open_pools`."""
        return Contact.of(self.pool)

    @property
    def cpu_words(self) -> str:
        if self.cores is None:
            return ABSENT
        return "under 0.1 cores" if self.cores < 0.05 else f"{number(self.cores, places=1)} cores"

    @property
    def memory_words(self) -> str:
        return ABSENT if self.memory_bytes is None else size(self.memory_bytes)

    @property
    def gpu_words(self) -> str:
        if self.gpu_percent is None:
            return ABSENT
        return f"{number(self.gpu_percent, places=0)} %"

    @property
    def is_part(self) -> bool:
        """Are the figures of some of the runs only?"""
        return 0 < self.measured < self.running


@dataclass(slots=True)
class _Sampled:
    sums: dict[str, float] = field(default_factory=dict)
    runs: int = 0
    gpus: list[float] = field(default_factory=list)


def pool_uses(pools: list[Pool]) -> list[PoolUse]:
    """The use of each pool, in their order; two queries, one where nothing runs."""
    taken = {pool: (slots, runs) for pool, slots, runs in kept_query.ask(_held, pools=[pool.pk for pool in pools])}
    sampled = _sampled(list(taken)) if taken else {}
    return [_use(pool, *taken.get(pool.pk, (0, 0)), sampled.get(pool.pk)) for pool in pools]


def _held(pools: Any) -> "QuerySet[Any, Any]":
    held = Attempt.objects.filter(pool=pools, status__in=sorted(OPEN_ATTEMPTS)).order_by().values_list("pool")
    return held.annotate(Sum("run__slots"), Count("pk"))


def open_pools(limit: int) -> list[Pool]:
    """Pools by name, those that take work first."""
    return kept_query.ask(_open_pools, limit)


def _open_pools(limit: int) -> "QuerySet[Pool]":
    return with_contact(Pool.objects.select_related("engine").only(*POOL)).order_by("-is_accepting", "slug")[:limit]


def _use(pool: Pool, taken: int, running: int, found: _Sampled | None) -> PoolUse:
    if found is None:
        return PoolUse(pool, taken, running)
    cpu, memory = found.sums.get(CPU), found.sums.get(MEMORY)
    return PoolUse(
        pool=pool, taken=taken, running=running, measured=found.runs,
        cores=None if cpu is None else cpu / 100,
        memory_bytes=None if memory is None else int(memory),
        gpu_percent=sum(found.gpus) / len(found.gpus) if found.gpus else None,
        gpus=len(found.gpus),
    )  # fmt: skip


def _sampled(pools: list[uuid.UUID]) -> dict[uuid.UUID, _Sampled]:
    series = MetricSeries.objects.filter(run__pool__in=pools, run__status__in=sorted(ACTIVE)).filter(MEASURED)
    rows = series.filter(Q(key__in=[CPU, MEMORY]) | Q(key__regex=GPU)).order_by().values_list("run__pool", "key")
    found: dict[uuid.UUID, _Sampled] = {}
    for pool, key, total, mean, runs in rows.annotate(Sum("last"), Avg("last"), Count("pk")):
        entry = found.setdefault(pool, _Sampled())
        if key in (CPU, MEMORY):
            entry.sums[key] = total
            entry.runs = max(entry.runs, runs)
        else:
            entry.gpus.append(mean)
    return found
