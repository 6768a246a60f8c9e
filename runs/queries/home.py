"""What the home page says: how the group is doing, and what needs the reader."""

import math
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db.models import F, Max, Min, Q, QuerySet
from django.db.models.functions import TruncHour

from runs.lifecycle import ACTIVE, OPEN_ATTEMPTS, RunStatus
from runs.models import Evaluation, MetricSeries, Run, Watch
from runs.queries.queue import waiting_runs
from workspaces.access import Actor
from workspaces.models import Approval, Benchmark, Contract, Dataset, DatasetVersion, Limit, Objective, Pool, Unit, Workspace
from workspaces.queries.workspace import creation_steps
from workspaces.standings import Standing, standings

ROWS_SHOWN = 8
DECISIONS_SHOWN = 4
BOARD_ROWS = 3
WINDOWS_SHOWN = 12
TREND_POINTS = 120
GROUND = 0.05  # of a window must have passed before a pace says anything
R = RunStatus
FINITE = Q(value__gt=-math.inf, value__lt=math.inf)


@dataclass(frozen=True, slots=True)
class Aim:
    """The objective with its best score under the current contract."""

    objective: Objective
    contract: Contract | None
    best: Evaluation | None
    trend: list[float] = field(default_factory=list)

    @property
    def is_reached(self) -> bool:
        if self.best is None or self.contract is None or self.objective.target is None:
            return False
        higher = self.contract.direction == Contract.Direction.MAXIMIZE
        return self.best.value >= self.objective.target if higher else self.best.value <= self.objective.target


def aim() -> Aim | None:
    objective = Objective.objects.filter(is_current=True).select_related("benchmark").first()
    if objective is None:
        return None
    contract = current_contract(objective.benchmark) if objective.benchmark else None
    if contract is None:
        return Aim(objective, None, None)
    return Aim(objective, contract, scored(contract).select_related("run").first(), _trend(contract))


def current_contract(benchmark: Benchmark) -> Contract | None:
    return Contract.objects.filter(benchmark=benchmark).order_by("-version").first()


def scored(contract: Contract) -> "QuerySet[Evaluation]":
    """Scores of the contract's own metric, best first; what is no finite number does not lead."""
    best = F("value").desc() if contract.direction == Contract.Direction.MAXIMIZE else F("value").asc()
    return Evaluation.objects.filter(FINITE, benchmark=contract.benchmark_id, contract=contract, metric=contract.metric).order_by(
        best, "pk"
    )


def _trend(contract: Contract) -> list[float]:
    """The best score as it stood hour after hour."""
    higher = contract.direction == Contract.Direction.MAXIMIZE
    hours = (
        scored(contract).order_by().annotate(hour=TruncHour("created_at")).values("hour").annotate(best=(Max if higher else Min)("value"))
    ).order_by("hour")
    found: list[float] = []
    for row in hours:
        found.append((max if higher else min)(row["best"], found[-1]) if found else row["best"])
    return found[-TREND_POINTS:]


@dataclass(frozen=True, slots=True)
class Decisions:
    """Requests that wait, the oldest first, and which of them the reader may decide."""

    items: list[tuple[Approval, bool]]
    count: int


def decisions(actor: Actor, *, may_approve: bool) -> Decisions:
    waiting = Approval.objects.filter(status=Approval.Status.PENDING)
    shown = list(waiting.select_related("requested_by").order_by("created_at", "pk")[:DECISIONS_SHOWN])
    voted = (
        set(waiting.filter(pk__in=[item.pk for item in shown], votes__person=actor.user).values_list("pk", flat=True))
        if actor.user
        else set()
    )
    own = actor.user.pk if actor.user else None
    return Decisions([(item, may_approve and item.requested_by_id != own and item.pk not in voted) for item in shown], waiting.count())


@dataclass(frozen=True, slots=True)
class NowRow:
    """A run under way or waiting, with what it says of itself."""

    run: Run
    watch: Watch | None
    value: float | None  # last value of the contract's metric, not a score yet
    waits: str  # why it does not run yet

    @property
    def percent(self) -> int | None:
        watch = self.watch
        if watch is None or watch.progress_done is None or not watch.progress_total or not watch.progress_total > 0:
            return None
        return int(min(max(watch.progress_done / watch.progress_total, 0.0), 1.0) * 100)

    @property
    def is_unanswered(self) -> bool:
        return self.watch is not None and self.watch.observed == "unknown"

    def seconds(self, now: datetime) -> float | None:
        return None if self.run.started_at is None else (now - self.run.started_at).total_seconds()


@dataclass(frozen=True, slots=True)
class Now:
    rows: list[NowRow]
    running: int
    waiting: int  # queued
    held: int  # for an approver


def running_now() -> Now:
    """Runs under way first, then those that wait; as many queries for one as for eight."""
    related = Run.objects.select_related("pool", "contract", "requested_by")
    rows = list(related.filter(status__in=sorted(ACTIVE)).order_by("-started_at", "-pk")[:ROWS_SHOWN])
    if len(rows) < ROWS_SHOWN:
        rows += related.filter(status__in=[R.QUEUED, R.AWAITING_APPROVAL]).order_by("-priority", "queued_at", "pk")[
            : ROWS_SHOWN - len(rows)
        ]
    counts = {status: Run.objects.filter(status=status).count() for status in (R.QUEUED, R.AWAITING_APPROVAL)}
    running = Run.objects.filter(status__in=sorted(ACTIVE)).count()
    watches = {
        watch.attempt.run_id: watch
        for watch in Watch.objects.filter(attempt__run__in=rows, attempt__status__in=sorted(OPEN_ATTEMPTS)).select_related("attempt")
    }
    values = {(run_id, key): last for run_id, key, last in MetricSeries.objects.filter(run__in=rows).values_list("run_id", "key", "last")}
    reasons = {waiting.run.pk: waiting.reason for waiting in waiting_runs(ROWS_SHOWN * 4)} if counts[R.QUEUED] else {}
    return Now(
        rows=[
            NowRow(
                run,
                watches.get(run.pk),
                values.get((run.pk, run.contract.metric)),
                reasons.get(run.pk, "") if run.status == R.QUEUED else "",
            )
            for run in rows
        ],
        running=running,
        waiting=counts[R.QUEUED],
        held=counts[R.AWAITING_APPROVAL],
    )


@dataclass(frozen=True, slots=True)
class Burn:
    """The week's GPU budget. `pace` is the share of the window that is over, 0..1."""

    standing: Standing
    pace: float
    reserved_runs: int
    runs_out_at: datetime | None

    @property
    def committed(self) -> int:
        return self.standing.used + self.standing.reserved


def standing_limits(now: datetime) -> list[Standing]:
    return standings(now=now, runs_at_once=Run.objects.filter(status__in=sorted(ACTIVE)).count())


def burn(limits: list[Standing], now: datetime) -> Burn | None:
    """The hard stop of the week, or else whichever weekly limit there is."""
    weekly = [standing for standing in limits if standing.unit == Unit.GPU_MS and standing.window == Limit.Window.WEEK]
    standing = next((standing for standing in weekly if standing.mode == Limit.Mode.STOP), weekly[0] if weekly else None)
    if standing is None or standing.starts_at is None or standing.ends_at is None:
        return None
    whole = (standing.ends_at - standing.starts_at).total_seconds()
    gone = min(max((now - standing.starts_at).total_seconds(), 0.0), whole)
    return Burn(standing, gone / whole, Run.objects.filter(reserved_gpu_ms__gt=0).count(), _runs_out(standing, gone, now))


def _runs_out(standing: Standing, gone: float, now: datetime) -> datetime | None:
    """When the budget would be used up if it went on being spent as it was; None where that is after the window, or too early to say."""
    assert standing.starts_at is not None
    assert standing.ends_at is not None
    if standing.used <= 0 or gone < GROUND * (standing.ends_at - standing.starts_at).total_seconds():
        return None
    left = (standing.amount - standing.used) / (standing.used / gone)
    at = now + timedelta(seconds=min(max(left, 0.0), 10**8))
    return at if at < standing.ends_at else None


@dataclass(frozen=True, slots=True)
class Block:
    """What holds work up, and where it can be changed: the name of a page and what it wants besides the workspace."""

    words: str
    lines: tuple[str, ...] = ()
    page: str = ""
    arguments: tuple[str, ...] = ()
    act: str = "Look"


def blocks(workspace: Workspace, limits: list[Standing], now: Now) -> list[Block]:
    found: list[Block] = []
    if workspace.status == Workspace.Status.CONFIGURING:
        steps = creation_steps(workspace)
        missing = tuple(step.missing for step in steps if not step.is_done)
        words = (
            f"Nothing can run yet: {len(missing)} of {len(steps)} steps of setting up are missing."
            if missing
            else "All is set up: open it for launches."
        )
        found.append(Block(words, missing, "workspace-setup", act="Set up"))
    elif workspace.status == Workspace.Status.ARCHIVED:
        found.append(Block("The workspace is archived: everything can be read, nothing launched."))
    for pool in Pool.objects.filter(Q(is_accepting=False) | Q(engine__is_accepting=False)).order_by("slug"):
        found.append(Block(f"{pool.slug} takes no new work.", page="pool", arguments=(pool.slug,)))
    for standing in limits:
        if standing.mode == Limit.Mode.STOP and standing.unit != Unit.RUNS and standing.window != Limit.Window.RUN and standing.free <= 0:
            until = f" It frees up {standing.until}." if standing.until else ""
            found.append(Block(f"{standing.name}: nothing is left.{until}", page="budget"))
    silent = sum(row.is_unanswered for row in now.rows)
    if silent:
        what = "1 run; its budget stays held" if silent == 1 else f"{silent} runs; their budget stays held"
        found.append(Block(f"The pool does not answer about {what}.", page="run-list"))
    if now.waiting:
        reason = next((row.waits for row in now.rows if row.waits and not row.waits.startswith("It is next")), "")
        if reason:
            found.append(Block(f"{now.waiting} {'run waits' if now.waiting == 1 else 'runs wait'} for a pool.", (reason,), page="queue"))
    return found


@dataclass(frozen=True, slots=True)
class Board:
    benchmark: Benchmark
    contract: Contract
    rows: list[Evaluation]


def board(aimed: Aim | None) -> Board | None:
    """The leading scores of the objective's benchmark, else of the one that was measured last."""
    benchmark = aimed.objective.benchmark if aimed else None
    if benchmark is None:
        latest = Evaluation.objects.select_related("benchmark").order_by("-created_at").first()
        benchmark = latest.benchmark if latest else None
    contract = (aimed.contract if aimed and aimed.contract else current_contract(benchmark)) if benchmark else None
    if benchmark is None or contract is None:
        return None
    return Board(benchmark, contract, list(scored(contract).select_related("run")[:BOARD_ROWS]))


@dataclass(frozen=True, slots=True)
class Growth:
    """Versions of the dataset that grew last; bars count records, or bytes where nobody counted."""

    dataset: Dataset
    bars: list[tuple[str, float, str]]
    newest: DatasetVersion
    datasets: int

    @property
    def counts_records(self) -> bool:
        return self.newest.records is not None


def growth() -> Growth | None:
    newest = DatasetVersion.objects.select_related("dataset").order_by("-created_at", "-pk").first()
    if newest is None:
        return None
    versions = list(DatasetVersion.objects.filter(dataset=newest.dataset_id).order_by("-number")[:WINDOWS_SHOWN])[::-1]
    counted = newest.records is not None
    bars = [(f"version {version.number}", float((version.records or 0) if counted else version.bytes), "") for version in versions]
    return Growth(newest.dataset, bars, newest, Dataset.objects.count())
