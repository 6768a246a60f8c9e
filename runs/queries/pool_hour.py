"""What the runs of one pool have used over the last hour, minute by minute, from the samples of their launchers."""

import math
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import connection
from django.db.models import Q, QuerySet

from runs.lifecycle import ACTIVE
from runs.models import Run
from runs.queries.utilisation import CPU, GPU, MEMORY
from workspaces import kept_query, scope
from workspaces.models import Pool

MINUTES, SECONDS = 60, 60.0
RUNS_LOOKED_AT = 2_000
GIGABYTE = 1e9

# A sample speaks of the time since the one before it, the first since the start (its step). Sums of a minute of an attempt, so that a run of a
# day and a thousand of a second are as few rows.
_USE = """
SELECT run_id, key, min(at - lasted), max(at), sum(value * lasted), sum(lasted)
  FROM (SELECT series.run_id, series.key, chunk.attempt_number, at, value,
               greatest(at - coalesce(lag(at) OVER (PARTITION BY series.id, chunk.attempt_number ORDER BY at), at - step), 0.0) AS lasted
          FROM runs_metricseries AS series
          JOIN runs_metricchunk AS chunk ON chunk.workspace_id = series.workspace_id AND chunk.series_id = series.id
         CROSS JOIN LATERAL unnest(chunk.steps, chunk."values", chunk.times) AS point (step, value, at)
         WHERE series.workspace_id = %(workspace)s AND series.run_id = ANY(%(runs)s) AND chunk.created_at >= %(since)s
           AND (series.key IN (%(cpu)s, %(memory)s) OR series.key ~ %(gpu)s)
           AND value >= 0 AND value < 'Infinity' AND at BETWEEN %(begins)s AND %(ends)s) AS sample
 GROUP BY run_id, key, attempt_number, floor(at / 60) HAVING sum(lasted) > 0
"""


@dataclass(frozen=True, slots=True)
class PoolHour:
    """Curves of (minutes before now, amount), NaN where nothing was measured; None where there is nothing to draw."""

    cores: list[tuple[float, float]] | None
    gigabytes: list[tuple[float, float]] | None
    gpu_percent: list[tuple[float, float]] | None

    @property
    def charts(self) -> "list[tuple[str, list[tuple[str, list[tuple[float, float]]]]]]":
        """Title and series of each chart that has something to draw."""
        curves = (
            ("CPU in the last hour, cores", self.cores),
            ("Memory in the last hour, GB", self.gigabytes),
            ("GPU in the last hour, %", self.gpu_percent),
        )
        return [(title, [(title, curve)]) for title, curve in curves if curve is not None]


class _Minutes:
    """Amounts over time, spread over the minutes that they lie in."""

    def __init__(self, begins: float) -> None:
        self._begins = begins
        self._sums, self._spans = [0.0] * MINUTES, [0.0] * MINUTES

    def add(self, since: float, until: float, amount: float) -> None:
        since, until = max(since, self._begins), min(until, self._begins + MINUTES * SECONDS)
        for minute in range(int((since - self._begins) // SECONDS), MINUTES):
            left = self._begins + minute * SECONDS
            shared = min(until, left + SECONDS) - max(since, left)
            if shared <= 0:
                break
            self._sums[minute] += amount * shared
            self._spans[minute] += shared

    def curve(self, unit: float, *, is_mean: bool) -> list[tuple[float, float]] | None:
        """The sum of all in each minute, or with `is_mean` what one of them had on the average."""
        if not any(self._spans):
            return None
        shares = self._spans if is_mean else [SECONDS] * MINUTES
        return [
            (float(minute - MINUTES + 1), self._sums[minute] / shares[minute] / unit if self._spans[minute] else math.nan)
            for minute in range(MINUTES)
        ]


def pool_hour(pool: Pool, now: datetime) -> PoolHour:
    since = now - timedelta(minutes=MINUTES)
    runs = dict(kept_query.ask(_recent, pool=pool.pk, since=since))
    begins, ends = since.timestamp(), now.timestamp()
    cpu, memory, gpus = _Minutes(begins), _Minutes(begins), _Minutes(begins)
    newest: dict[tuple[Any, str], tuple[float, float, float]] = {}
    for run, key, first, last, weighted, lasted in _rows(list(runs), since, begins, ends):
        minutes, mean = {CPU: cpu, MEMORY: memory}.get(key, gpus), weighted / lasted
        minutes.add(first, last, mean)
        if runs[run] in ACTIVE and last > newest.get((run, key), (0.0,))[0]:
            newest[run, key] = (last, mean, lasted)
    for (_, key), (last, mean, lasted) in newest.items():  # since its last sample a run under way has gone on much the same
        {CPU: cpu, MEMORY: memory}.get(key, gpus).add(last, min(ends, last + max(lasted, SECONDS / 2)), mean)
    return PoolHour(cpu.curve(100, is_mean=False), memory.curve(GIGABYTE, is_mean=False), gpus.curve(1, is_mean=True))


def _recent(pool: Any, since: Any) -> "QuerySet[Any, Any]":
    recent = Run.objects.filter(Q(status__in=sorted(ACTIVE)) | Q(ended_at__gte=since), pool=pool).order_by("-started_at")
    return recent.values_list("pk", "status")[:RUNS_LOOKED_AT]


def _rows(runs: list[Any], since: datetime, begins: float, ends: float) -> list[tuple[Any, ...]]:
    """One statement over the series of runs that the open workspace's manager has found; row security stands behind it."""
    if not runs:
        return []
    keys = {"cpu": CPU, "memory": MEMORY, "gpu": GPU}
    with connection.cursor() as cursor:
        cursor.execute(_USE, {"workspace": scope.current_id(), "runs": runs, "since": since, "begins": begins, "ends": ends, **keys})
        rows: list[tuple[Any, ...]] = cursor.fetchall()
        return rows
