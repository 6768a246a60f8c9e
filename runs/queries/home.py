"""What the home page says: how the group is doing, and what needs the reader."""

import uuid
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db.models import Count, Max, Min, Q, QuerySet
from django.db.models.functions import TruncHour

from runs.lifecycle import ACTIVE, OPEN_ATTEMPTS, TERMINAL, RunStatus
from runs.models import Evaluation, MetricSeries, Run, Watch
from runs.queries.queue import waiting_runs
from runs.queries.scoreboard import FINITE, best_first, scores_under
from workspaces.access import Actor
from workspaces.models import Approval, Benchmark, Contract, Dataset, DatasetVersion, Limit, Objective, Pool, Unit, Workspace
from workspaces.queries.overrun import overruns
from workspaces.queries.registry import current_contract
from workspaces.queries.workspace import creation_steps
from workspaces.standings import Standing, standings

ROWS_SHOWN = 8
DECISIONS_SHOWN = 4
BOARD_ROWS = 3
WINDOWS_SHOWN = 12
TREND_POINTS = 120
GROUND = 0.05  # of a window must have passed before a pace says anything
R = RunStatus


@dataclass(frozen=True, slots=True)
class Aim:
    """The objective with its best score under the current contract."""

    objective: Objective
    contract: Contract | None
    leading: list[Evaluation] = field(default_factory=list)
    trend: list[float] = field(default_factory=list)

    @property
    def best(self) -> Evaluation | None:
        return self.leading[0] if self.leading else None

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
    contract = current_contract(objective.benchmark.pk) if objective.benchmark else None
    if contract is None:
        return Aim(objective, None)
    return Aim(objective, contract, leading(contract), _trend(contract))


def scored(contract: Contract) -> "QuerySet[Evaluation]":
    """Scores of the contract's own metric, best first; what is no finite number does not lead."""
    return scores_under(contract).filter(FINITE).order_by(*best_first(contract))


def leading(contract: Contract) -> list[Evaluation]:
    shown = ("benchmark_id", "contract_id", "metric", "value", "standard_error", "created_at", "run__name")
    return list(scored(contract).select_related("run").only(*shown)[:BOARD_ROWS])


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
    may_vote = may_approve and actor.user is not None and bool(shown)
    voted = (
        set(waiting.filter(pk__in=[item.pk for item in shown], votes__person=actor.user).values_list("pk", flat=True)) if may_vote else ()
    )
    own = actor.user.pk if actor.user else None
    count = waiting.count() if len(shown) == DECISIONS_SHOWN else len(shown)
    return Decisions([(item, may_approve and item.requested_by_id != own and item.pk not in voted) for item in shown], count)


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
    reserved: int  # how many hold some of the budget


# Of a run and what it points at, no more than a row says: JSON columns make most of what a run's row weighs.
ROW = ("name", "status", "trigger", "trigger_reason", "started_at", "queued_at", "priority", "slots", "reserved_gpu_ms", "wall_seconds")
ROW_RELATED = ("pool__slug", "contract__metric", "requested_by__username", "requested_by__display_name")


def running_now() -> Now:
    """Runs under way first, then those that wait; as many queries for one as for eight, and few where nothing is going on."""
    counts, reserved = _open_runs()
    running = sum(counts.get(status, 0) for status in ACTIVE)
    waiting, held = counts.get(R.QUEUED, 0), counts.get(R.AWAITING_APPROVAL, 0)
    related = Run.objects.select_related("pool", "contract", "requested_by").only(*ROW, *ROW_RELATED)
    active = list(related.filter(status__in=sorted(ACTIVE)).order_by("-started_at", "-pk")[:ROWS_SHOWN]) if running else []
    rows = active
    if len(active) < ROWS_SHOWN and waiting + held:
        queue = related.filter(status__in=[R.QUEUED, R.AWAITING_APPROVAL]).order_by("-priority", "queued_at", "pk")
        rows = active + list(queue[: ROWS_SHOWN - len(active)])
    reasons = {entry.run.pk: entry.reason for entry in waiting_runs(ROWS_SHOWN * 4)} if waiting and rows != active else {}
    watches, values = _seen(active)
    return Now(
        rows=[NowRow(run, watches.get(run.pk), values.get((run.pk, run.contract.metric)), reasons.get(run.pk, "")) for run in rows],
        running=running,
        waiting=waiting,
        held=held,
        reserved=reserved,
    )


def _open_runs() -> tuple[dict[str, int], int]:
    """How many runs that have not ended are in each status, and how many of them hold some of the budget; the ended ones, which may be a
    hundred times as many, are not looked at."""
    opened = Run.objects.filter(status__in=sorted(set(RunStatus) - TERMINAL)).order_by().values_list("status")
    rows = list(opened.annotate(count=Count("pk"), reserved=Count("pk", filter=Q(reserved_gpu_ms__gt=0))))
    return {status: count for status, count, _ in rows}, sum(reserved for *_, reserved in rows)


def _seen(active: list[Run]) -> tuple[dict[uuid.UUID, Watch], dict[tuple[uuid.UUID, str], float | None]]:
    """What was last seen of runs under way, and the last value of their contract's metric: of one series a run, however many it has."""
    if not active:
        return {}, {}
    watched = Watch.objects.filter(attempt__run__in=active, attempt__status__in=sorted(OPEN_ATTEMPTS)).select_related("attempt")
    watches = watched.only("observed", "progress_done", "progress_total", "progress_text", "attempt__run_id")
    keys = {run.contract.metric for run in active}
    values = MetricSeries.objects.filter(run__in=active, key__in=keys).values_list("run_id", "key", "last")
    return {watch.attempt.run_id: watch for watch in watches}, {(run_id, key): last for run_id, key, last in values}


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


def standing_limits(workspace: Workspace, going: Now, now: datetime) -> list[Standing]:
    return standings(now=now, runs_at_once=going.running, workspace=workspace)


def burn(limits: list[Standing], going: Now, now: datetime) -> Burn | None:
    """The hard stop of the week, or else whichever weekly limit there is."""
    weekly = [standing for standing in limits if standing.unit == Unit.GPU_MS and standing.window == Limit.Window.WEEK]
    standing = next((standing for standing in weekly if standing.mode == Limit.Mode.STOP), weekly[0] if weekly else None)
    if standing is None or standing.starts_at is None or standing.ends_at is None:
        return None
    whole = (standing.ends_at - standing.starts_at).total_seconds()
    gone = min(max((now - standing.starts_at).total_seconds(), 0.0), whole)
    return Burn(standing, gone / whole, going.reserved, _runs_out(standing, gone, now))


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
    argument: str = ""
    act: str = "Look"


def blocks(workspace: Workspace, limits: list[Standing], now: Now, moment: datetime) -> list[Block]:
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
        found.append(Block(f"{pool.slug} takes no new work.", page="pool", argument=pool.slug))
    for standing in limits:
        if standing.mode == Limit.Mode.STOP and standing.unit != Unit.RUNS and standing.window != Limit.Window.RUN and standing.free <= 0:
            until = f" It frees up {standing.until}." if standing.until else ""
            found.append(Block(f"{standing.name}: nothing is left.{until}", page="budget"))
    for alarm in overruns(now=moment):
        found.append(Block(alarm.words, page="run" if alarm.run_ref else "", argument=alarm.run_ref))
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
    if aimed is not None and aimed.objective.benchmark is not None and aimed.contract is not None:
        return Board(aimed.objective.benchmark, aimed.contract, aimed.leading)
    benchmark = aimed.objective.benchmark if aimed else None
    if benchmark is None:
        latest = Evaluation.objects.select_related("benchmark").order_by("-created_at").first()
        benchmark = latest.benchmark if latest else None
    contract = current_contract(benchmark.pk) if benchmark else None
    return Board(benchmark, contract, leading(contract)) if benchmark and contract else None


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
    grew_last = DatasetVersion.objects.order_by("-created_at", "-pk").values("dataset")[:1]
    versions = list(DatasetVersion.objects.filter(dataset=grew_last).select_related("dataset").order_by("-number")[:WINDOWS_SHOWN])[::-1]
    if not versions:
        return None
    newest = versions[-1]
    counted = newest.records is not None
    bars = [(f"version {version.number}", float((version.records or 0) if counted else version.bytes), "") for version in versions]
    return Growth(newest.dataset, bars, newest, Dataset.objects.count())
