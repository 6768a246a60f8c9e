"""What runs, what waits, and which requests wait for a decision."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

from django.db.models import Count, Q, QuerySet

from runs.lifecycle import ACTIVE, OPEN_ATTEMPTS, TERMINAL, RunStatus
from runs.models import MetricSeries, Run, Watch
from runs.queries.run_list import FAILURES, RunFilter, matching
from runs.queries.start import with_grounds
from workspaces import kept_query
from workspaces.access import Actor
from workspaces.models import Approval, ApprovalVote
from workspaces.windows import clock_of

ROWS_SHOWN = 8
DECISIONS_SHOWN = 4
ALONE_SHOWN = timedelta(days=7)
R = RunStatus


@dataclass(frozen=True, slots=True)
class Decisions:
    """Requests that wait, the oldest first, and which of them the reader may decide."""

    items: list[tuple[Approval, bool]]
    count: int


def _pending() -> "QuerySet[Approval]":
    return Approval.objects.filter(status=Approval.Status.PENDING)


def _undecided() -> "QuerySet[Approval]":
    return _pending().select_related("requested_by").order_by("created_at", "pk")[:DECISIONS_SHOWN]


def decided_alone(now: datetime) -> list[ApprovalVote]:
    """What owners decided alone in the last week that others should have (break-glass), the newest first; for all who may approve."""
    found: list[ApprovalVote] = kept_query.ask(_alone, since=now - ALONE_SHOWN)
    return found


def _alone(since: Any) -> "QuerySet[ApprovalVote]":
    rows = ApprovalVote.objects.filter(is_alone=True, created_at__gt=since).select_related("approval", "person")
    return rows.order_by("-created_at", "-pk")[:DECISIONS_SHOWN]


def decisions(actor: Actor, *, roles: Sequence[str]) -> Decisions:
    """`roles`: those whose word is the reader's, none for who may not approve."""
    waiting = _pending()
    shown: list[Approval] = kept_query.ask(_undecided)
    may_vote = bool(roles) and actor.user is not None and bool(shown)
    voted = (
        set(waiting.filter(pk__in=[item.pk for item in shown], votes__person=actor.user).values_list("pk", flat=True)) if may_vote else ()
    )
    own = actor.user.pk if actor.user else None
    count = waiting.count() if len(shown) == DECISIONS_SHOWN else len(shown)
    return Decisions([(item, item.role in roles and item.requested_by_id != own and item.pk not in voted) for item in shown], count)


@dataclass(frozen=True, slots=True)
class NowRow:
    """A run under way or waiting, with what it says of itself."""

    run: Run
    watch: Watch | None
    value: float | None  # last value of the contract's metric, not a score yet

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
        """How long it has been under way; one that is back in the queue is not."""
        return (now - self.run.started_at).total_seconds() if self.run.is_active and self.run.started_at else None


@dataclass(frozen=True, slots=True)
class Now:
    rows: list[NowRow]
    running: int
    waiting: int  # queued
    held: int  # for an approver
    reserved: int  # how many hold some of the budget


# Of a run and what it points at, no more than a row says: JSON columns make most of what a run's row weighs.
ROW = (
    "name", "status", "trigger", "trigger_reason", "started_at", "queued_at", "priority", "slots", "reserved_gpu_ms", "reserved_api_micros",
    "budget_window_at", "wall_seconds",
)  # fmt: skip
ROW_RELATED = ("pool__slug", "contract__metric", "requested_by__username", "requested_by__display_name")


def running_now() -> Now:
    """Runs under way first, then those that wait; as many queries for one as for eight, and few where nothing is going on."""
    counts, reserved = _open_runs()
    running = sum(counts.get(status, 0) for status in ACTIVE)
    waiting, held = counts.get(R.QUEUED, 0), counts.get(R.AWAITING_APPROVAL, 0)
    active: list[Run] = kept_query.ask(_under_way) if running else []
    rows = active
    if len(active) < ROWS_SHOWN and waiting + held:
        rows = active + kept_query.ask(_waiting)[: ROWS_SHOWN - len(active)]
    watches, values = _seen(active)
    return Now(
        rows=[NowRow(run, watches.get(run.pk), values.get((run.pk, run.contract.metric))) for run in rows],
        running=running,
        waiting=waiting,
        held=held,
        reserved=reserved,
    )


def newest_end() -> str:
    """Which run ended last, empty where none has: while it stays the same, no score has come."""
    newest: list[Run] = kept_query.ask(_ended)
    return newest[0].public_id if newest else ""


def _ended() -> "QuerySet[Run]":
    return Run.objects.filter(ended_at__isnull=False).only("pk").order_by("-ended_at", "-pk")[:1]


def _open_runs() -> tuple[dict[str, int], int]:
    """How many runs that have not ended are in each status, and how many of them hold some of the budget; the ended ones, which may be a
    hundred times as many, are not looked at."""
    rows = kept_query.ask(_opened)
    return {status: count for status, count, _ in rows}, sum(reserved for *_, reserved in rows)


def _opened() -> "QuerySet[Any, Any]":
    opened = Run.objects.filter(status__in=sorted(set(RunStatus) - TERMINAL)).order_by().values_list("status")
    return opened.annotate(count=Count("pk"), reserved=Count("pk", filter=Q(reserved_gpu_ms__gt=0)))


def _related() -> "QuerySet[Run]":
    return Run.objects.select_related("pool", "contract", "requested_by").only(*ROW, *ROW_RELATED)


def _under_way() -> "QuerySet[Run]":
    return _related().filter(status__in=sorted(ACTIVE)).order_by("-started_at", "-pk")[:ROWS_SHOWN]


def _waiting() -> "QuerySet[Run]":
    queue = with_grounds(_related().filter(status__in=[R.QUEUED, R.AWAITING_APPROVAL]))
    return queue.order_by("-priority", "queued_at", "pk")[:ROWS_SHOWN]


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
class Ended:
    """Of the runs asked for from a day on: how many have ended, and how many of them failed. As many as the run list shows for the same day."""

    day: date
    count: int
    failed: int


def ended_since(since: datetime, zone: str) -> Ended:
    """Counts from the beginning of the local day that `since` lies in."""
    day = since.astimezone(clock_of(zone)).date()
    runs = matching(RunFilter(status="ended", since=day), zone).order_by().values_list("status").annotate(Count("pk"))
    counts = dict(runs)
    return Ended(day, sum(counts.values()), sum(counts.get(status, 0) for status in FAILURES))
