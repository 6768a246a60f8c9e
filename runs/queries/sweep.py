"""Sweeps as pages and the API show them: how far each is, and its members with what was varied and what came of it."""

import math
import uuid
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet, Sum

from runs.lifecycle import ACTIVE, TERMINAL, RunStatus
from runs.models import Evaluation, MetricSeries, Run, Sweep
from runs.pools.sampling import PREFIX
from runs.queries.score import RunScore, scores_of
from runs.search_space import SearchSpace, arithmetic, read_space
from workspaces.models import Contract
from workspaces.queries.paging import Page, newest_first

MEMBERS_SHOWN = 500
METRICS_SHOWN = 4


@dataclass(frozen=True, slots=True)
class Progress:
    """Members by what became of them; retries count in their original's place."""

    members: int
    launched: int
    waiting: int
    active: int
    succeeded: int
    failed: int
    spent_gpu_ms: int

    @property
    def ended(self) -> int:
        return self.succeeded + self.failed

    @property
    def percent(self) -> int:
        return 100 * self.ended // self.members


@dataclass(frozen=True, slots=True)
class MemberRow:
    number: int
    run: Run
    parameters: dict[str, Any]  # those that the space varies
    score: RunScore | None
    metrics: dict[str, float]

    def seconds(self, now: datetime) -> float | None:
        return None if self.run.started_at is None else ((self.run.ended_at or now) - self.run.started_at).total_seconds()


@dataclass(frozen=True, slots=True)
class SweepTable:
    """Launched members by one result, best first, those without a number after them in their order."""

    space: SearchSpace
    axes: tuple[str, ...]  # names of what is varied, `seed` last where seeds are
    metrics: tuple[str, ...]
    rows: tuple[MemberRow, ...]
    contract: Contract
    by: str  # the metric that orders; empty: the score
    descends: bool  # is less better?
    is_scored: bool

    @property
    def result(self) -> str:
        """What orders, in words."""
        return self.by or self.contract.metric

    def value(self, row: MemberRow) -> float | None:
        """What orders: the last value of a metric, or the score."""
        return row.metrics.get(self.by) if self.by else row.score.value if row.score else None

    def place(self, row: MemberRow) -> tuple[int, float, int]:
        """Where a row stands; no two stand in the same place."""
        value = self.value(row)
        if value is None or not math.isfinite(value):
            return 1, 0.0, row.number
        return 0, value if self.descends else -value, row.number

    @property
    def best(self) -> MemberRow | None:
        """By the score in the contract's own direction, whatever orders the table; None where nothing has a finite score."""
        scored = [row for row in self.rows if row.score and math.isfinite(row.score.value)]
        sign = 1 if self.contract.direction == Contract.Direction.MINIMIZE else -1
        return min(scored, key=lambda row: (sign * row.score.value if row.score else 0.0, row.number), default=None)


def list_sweeps(*, cursor: str = "", size: int = 50) -> Page[Sweep]:
    """Newest first; each with `policy_name` and `policy_slug` of the policy that asked for it, if one did."""
    rows = Sweep.objects.select_related("benchmark", "agent", "agent_version", "pool", "requested_by")
    rows = rows.annotate(policy_name=F("decision__policy__name"), policy_slug=F("decision__policy__slug"))
    return newest_first(rows, cursor=cursor, size=size)


def find_sweep(text: str) -> Sweep:
    return Sweep.objects.find(text, "benchmark", "agent", "agent_version", "pool", "requested_by")


def progress_of(sweeps: Sequence[Sweep]) -> dict[uuid.UUID, Progress]:
    """How far each is, in one look; a row for each status that its members have."""
    states: dict[uuid.UUID, Counter[RunStatus]] = {sweep.pk: Counter() for sweep in sweeps}
    spent: Counter[uuid.UUID] = Counter()
    later = Q(created_at__gt=OuterRef("created_at")) | Q(created_at=OuterRef("created_at"), pk__gt=OuterRef("pk"))
    retries = Run.objects.filter(later, sweep=OuterRef("sweep"), sweep_member=OuterRef("sweep_member"), retry_of__isnull=False)
    rows = Run.objects.filter(sweep__in=states).order_by().values("sweep_id", "status")
    for row in rows.annotate(members=Count("pk", filter=~Exists(retries)), gpu_ms=Sum("spent_gpu_ms")):
        states[row["sweep_id"]][RunStatus(row["status"])] = row["members"]  # a retry stands for what it repeats
        spent[row["sweep_id"]] += row["gpu_ms"]
    return {sweep.pk: _progress(sweep, states[sweep.pk], spent[sweep.pk]) for sweep in sweeps}


def _is_low_better(metric: str, contract: Contract) -> bool:
    """No run says which way its own metrics are good: a loss or an error is better low, whatever else is taken as the contract's."""
    if metric and metric != contract.metric and any(word in metric.lower() for word in ("loss", "error", "perplexity", "regret")):
        return True
    return contract.direction == Contract.Direction.MINIMIZE


def _progress(sweep: Sweep, states: "Counter[RunStatus]", spent_gpu_ms: int) -> Progress:
    ended = sum(count for status, count in states.items() if status in TERMINAL)
    active = sum(count for status, count in states.items() if status in ACTIVE)
    launched = states.total()
    return Progress(
        members=sweep.members,
        launched=launched,
        waiting=launched - ended - active,
        active=active,
        succeeded=states[RunStatus.SUCCEEDED],
        failed=ended - states[RunStatus.SUCCEEDED],
        spent_gpu_ms=spent_gpu_ms,
    )


def table_of(sweep: Sweep, *, by: str = "", best: str = "", most: int = MEMBERS_SHOWN) -> SweepTable:
    """The members that have been launched, the best `most` of them, by their score or by the last value of the metric `by`; `best` is
    `low` or `high`; where it is neither, the contract's direction for its own metric, and for another what its name says. Without any score,
    the metric that most of them have."""
    is_wide = sweep.members > most
    space = read_space(sweep.space)
    axes = (*space.names, *(("seed",) if space.seeds else ()))
    runs = _newest_of_each(sweep, _first(sweep, most, _by_score(sweep, best, most)) if is_wide else range(1, most + 1))
    scores, metrics = scores_of(runs), _metrics(runs)
    shared: Counter[str] = Counter(key for by_key in metrics.values() for key in by_key)
    chosen = tuple(key for key, _ in sorted(shared.items(), key=lambda item: (-item[1], item[0]))[:METRICS_SHOWN])
    by = by if by in shared else "" if scores or not chosen else chosen[0]
    contract = runs[0].contract if runs else Contract.objects.filter(benchmark=sweep.benchmark).latest("version")
    descends = best == "low" if best in ("low", "high") else _is_low_better(by, contract)
    if is_wide and by:
        runs = _newest_of_each(sweep, _first(sweep, most, _by_metric(sweep, by, most, descends=descends)))
        scores, metrics = scores_of(runs), _metrics(runs)
    rows = [
        MemberRow(
            number=run.sweep_member or 0,
            run=run,
            parameters=_varied(run, axes),
            score=scores.get(run.pk),
            metrics=metrics.get(run.pk, {}),
        )
        for run in runs
    ]
    table = SweepTable(
        space=space, axes=axes, metrics=chosen, rows=(), contract=contract, by=by, descends=descends, is_scored=bool(scores)
    )  # fmt: skip
    return replace(table, rows=tuple(sorted(rows, key=table.place)))


def _varied(run: Run, axes: tuple[str, ...]) -> dict[str, Any]:
    return {name: run.seed if name == "seed" else run.parameters.get(name) for name in axes}


def words_of(sweep: Sweep) -> str:
    """How many members, as the product that they are."""
    return arithmetic(read_space(sweep.space))


def _by_score(sweep: Sweep, best: str, most: int) -> list[int]:
    """The members with the best scores, their own or what others measured of their artifacts."""
    contract = Contract.objects.get(benchmark=sweep.benchmark, version=sweep.request["contract"])
    descends = best == "low" if best in ("low", "high") else _is_low_better("", contract)
    scores = Evaluation.objects.filter(benchmark=sweep.benchmark, contract=contract, metric=contract.metric)
    found: list[tuple[float, int]] = []
    for run in ("run", "subject_artifact__run"):
        found += _finite(scores.filter(**{f"{run}__sweep": sweep}), "value", f"{run}__sweep_member", most, descends=descends)
    return [member for _, member in sorted(found, reverse=not descends)]


def _by_metric(sweep: Sweep, key: str, most: int, *, descends: bool) -> list[int]:
    series = MetricSeries.objects.filter(run__sweep=sweep, key=key)
    return [member for _, member in _finite(series, "last", "run__sweep_member", most, descends=descends)]


def _finite(rows: QuerySet[Any], value: str, member: str, most: int, *, descends: bool) -> list[tuple[float, int]]:
    """The best (value, member). To PostgreSQL NaN is above infinity."""
    within = rows.filter(**{f"{value}__gt": -math.inf, f"{value}__lt": math.inf})
    return list(within.order_by(value if descends else f"-{value}").values_list(value, member)[:most])


def _first(sweep: Sweep, most: int, best: Sequence[int]) -> list[int]:
    """The best members, then the others in their order."""
    chosen = dict.fromkeys(best)
    chosen.update(dict.fromkeys(range(1, min(sweep.members, most) + 1)))
    return list(chosen)[:most]


def _newest_of_each(sweep: Sweep, members: Sequence[int]) -> list[Run]:
    """The newest run of each of these members, in their order: a retry stands for what it repeats."""
    within = Q(sweep_member__range=(members[0], members[-1])) if isinstance(members, range) else Q(sweep_member__in=members)
    runs = Run.objects.filter(within, sweep=sweep).select_related("contract").defer("frozen")
    newest = {run.sweep_member: run for run in runs.order_by("sweep_member", "created_at")}
    return list(newest.values())


def _metrics(runs: list[Run]) -> dict[uuid.UUID, dict[str, float]]:
    """The last value of each series; those of the machine (`system/…`) say nothing about what was varied."""
    rows = MetricSeries.objects.filter(run__in=runs, last__isnull=False).exclude(key__startswith=PREFIX)
    found: dict[uuid.UUID, dict[str, float]] = {}
    for run_id, key, last in rows.values_list("run_id", "key", "last"):
        if last is not None:
            found.setdefault(run_id, {})[key] = last
    return found
