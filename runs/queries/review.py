"""The runs that deserve a person, ranked: facts in a fixed number of statements, findings by the rules of runs/review.py.

Looked at are the runs that ended lately; what they are held against is what ended before them, within twice that time.
"""

import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, Exists, F, OuterRef, QuerySet, TextField, Value
from django.db.models.functions import Concat

from runs.lifecycle import RunStatus
from runs.models import Failure, Review, Run, RunInput, UndeclaredInput
from runs.queries.failure import REPEATED, failure_groups
from runs.queries.ranking import credited
from runs.queries.standing import standing
from runs.queries.undeclared import THING
from runs.queries.verdict import State, said_to_be, verdicts_of
from runs.review import EARLIER_MOST, Cost, Doubted, Finding, Reason, contaminated, costly, failing, first, surprising, undeclared
from workspaces import kept_query
from workspaces.access import Kind
from workspaces.models import DatasetVersion
from workspaces.queries.paging import Place, in_order
from workspaces.units import gpu_time, money

LOOKED_AT, LOOKED_BACK = 5_000, timedelta(days=30)
HELD_AGAINST = 10_000  # runs, of twice that time
SHOWN = 50
SEEN_SHOWN = 10
DOUBTED = 200  # dataset versions that are contaminated or suspicious
GROUPS = 100  # causes for which runs fail
LEAST_GPU_MS, LEAST_API_MICROS = 36_000, 10_000  # a hundredth of an hour, of a unit of currency
# What a finding tells of besides runs; who may not read that kind is not told.
KINDS: dict[Reason, Kind] = {Reason.CONTAMINATED: Kind.DATASET, Reason.SURPRISING: Kind.EVALUATION}


@dataclass(frozen=True, slots=True)
class Deserving:
    """A run that nobody has seen yet, and what is found of it, the weightiest first."""

    run: Run
    findings: tuple[Finding, ...]

    @property
    def weight(self) -> int:
        return sum(finding.weight for finding in self.findings)


@dataclass(frozen=True, slots=True)
class Found:
    """The first of the list, how many there are of it, and of each reason; `runs` were looked at, `is_cut` where more ended in that time."""

    items: list[Deserving]
    total: int
    counts: dict[Reason, int]
    runs: int
    is_cut: bool
    next: str | None = None  # cursor of what follows


@dataclass(frozen=True, slots=True)
class _Ended:
    pk: uuid.UUID
    number: int
    status: str
    benchmark: uuid.UUID
    contract: uuid.UUID
    agent: uuid.UUID
    version: uuid.UUID
    version_number: int
    name: str  # of the agent
    gpu_ms: int
    api_micros: int
    began: datetime | None
    ended: datetime

    @property
    def has_succeeded(self) -> bool:
        return self.status == RunStatus.SUCCEEDED


@dataclass(frozen=True, slots=True)
class _Scored:
    value: float
    error: float | None
    credited: uuid.UUID  # the agent that made what was measured


@dataclass(slots=True)
class _Facts:
    """Of the runs that are looked at, everything the rules ask for, by the run's key; scores by run, benchmark and contract."""

    scores: dict[tuple[uuid.UUID, ...], _Scored] = field(default_factory=dict)
    undeclared: dict[uuid.UUID, int] = field(default_factory=dict)
    doubted: dict[uuid.UUID, list[Doubted]] = field(default_factory=dict)
    groups: dict[uuid.UUID, tuple[str, int]] = field(default_factory=dict)
    firsts: dict[uuid.UUID, bool] = field(default_factory=dict)  # first runs of an agent's version that began: of the agent too?
    seen: dict[uuid.UUID, set[str]] = field(default_factory=dict)


def deserving(
    now: datetime, *, may_see: Callable[[Kind], bool], reason: Reason | None = None, cursor: str = "", size: int = SHOWN
) -> Found:  # fmt: skip
    """Runs that deserve a person, as far as a reader may see why; with `reason` those alone of which that is found. Raises BadCursor."""
    found, runs, is_cut = _unseen(now, may_see)
    counts = {one: sum(any(finding.reason == one for finding in findings) for _, findings in found) for one in Reason}
    wanted = [row for row in found if reason is None or any(finding.reason == reason for finding in row[1])]
    page = in_order(wanted, _place, cursor=cursor, size=size)
    shown = page.items
    rows = Run.objects.select_related("agent", "agent_version", "benchmark", "requested_by").defer("frozen", "parameters")
    by_key = rows.in_bulk([run.pk for run, _ in shown]) if shown else {}
    return Found([Deserving(by_key[run.pk], findings) for run, findings in shown], len(wanted), counts, runs, is_cut, page.next)


def _place(row: "tuple[_Ended, tuple[Finding, ...]]") -> Place:
    """The weightiest first, of those alike the one that ended last."""
    run, findings = row
    return -sum(finding.weight for finding in findings), -run.ended.timestamp(), -run.number


def findings_of(run: Run, now: datetime, *, may_see: Callable[[Kind], bool]) -> tuple[Finding, ...]:
    """What is found of one run and nobody has seen yet; nothing of one that ended before the time that is looked at."""
    found, _, _ = _unseen(now, may_see)
    return next((findings for ended, findings in found if ended.pk == run.pk), ())


def seen_lately() -> list[Review]:
    """What people have seen last, newest first."""
    return list(Review.objects.filter(taken_back_at=None).select_related("run", "reviewed_by").order_by("-created_at", "-pk")[:SEEN_SHOWN])


def may_read(key: str, may_see: Callable[[Kind], bool]) -> bool:
    """May a reader see what a finding's key tells?"""
    kind = KINDS.get(Reason(key.partition(":")[0]))
    return kind is None or may_see(kind)


# --- Findings -----------------------------------------------------------------------------------------------------------------------------


def _unseen(now: datetime, may_see: Callable[[Kind], bool]) -> tuple[list[tuple[_Ended, tuple[Finding, ...]]], int, bool]:
    since, before = now - LOOKED_BACK, now - 2 * LOOKED_BACK
    history = [_Ended(*row) for row in kept_query.ask(_ended, since=before)]  # newest first
    lately = [run for run in history if run.ended >= since]
    looked = lately[:LOOKED_AT]
    if not looked:
        return [], 0, False
    facts = _facts(since, before, _earliest(history, looked))
    found = []
    for run, findings in _findings(history[::-1], {run.pk for run in looked}, facts):
        seen = facts.seen.get(run.pk, ())
        told = tuple(one for one in findings if one.key not in seen and may_read(one.key, may_see))
        if told:
            found.append((run, tuple(sorted(told, key=lambda one: -one.weight))))
    return found, len(looked), len(lately) > LOOKED_AT


def _findings(history: Iterable[_Ended], looked: set[uuid.UUID], facts: _Facts) -> Iterable[tuple[_Ended, list[Finding]]]:
    """In the order in which runs ended, so that each is held against those before it."""
    scores: dict[tuple[uuid.UUID, uuid.UUID], list[float]] = defaultdict(list)
    spent: dict[tuple[uuid.UUID, uuid.UUID], list[tuple[int, int]]] = defaultdict(list)
    for run in history:
        score, like = facts.scores.get((run.pk, run.benchmark, run.contract)), spent[run.version, run.benchmark]
        earlier = scores[score.credited, run.contract] if score is not None else []
        if run.pk in looked:
            yield run, [finding for finding in _rules(run, score, earlier, like, facts) if finding is not None]
        if score is not None:
            earlier.append(score.value)
            del earlier[: -2 * EARLIER_MOST]  # some may be no numbers
        if run.has_succeeded:
            like.append((run.gpu_ms, run.api_micros))
            del like[:-EARLIER_MOST]


def _rules(
    run: _Ended, score: _Scored | None, earlier: list[float], like: list[tuple[int, int]], facts: _Facts
) -> Iterable[Finding | None]:
    yield contaminated(facts.doubted.get(run.pk, []))
    yield undeclared(facts.undeclared.get(run.pk, 0))
    if score is not None:
        yield surprising(score.value, score.error, earlier)
    if run.pk in facts.groups:
        yield failing(*facts.groups[run.pk], run.name)
    if run.began is not None:
        gpu, api = [one for one, _ in like], [one for _, one in like]
        costs = (
            Cost("GPU time", run.gpu_ms, gpu, LEAST_GPU_MS, gpu_time),
            Cost("API spend", run.api_micros, api, LEAST_API_MICROS, money),
        )
        yield costly(costs, succeeded=run.has_succeeded)
        if run.pk in facts.firsts:
            yield first(run.name, run.version_number, is_new_agent=facts.firsts[run.pk])


# --- Facts --------------------------------------------------------------------------------------------------------------------------------


def _facts(since: datetime, before: datetime, earliest: list[uuid.UUID]) -> _Facts:
    facts = _Facts()
    facts.scores = {row[:3]: _Scored(*row[3:]) for row in kept_query.ask(_scores, since=before)}
    facts.undeclared = dict(kept_query.ask(_undeclared, since=since))
    doubts = _doubts()
    if doubts:
        for rows in (RunInput.objects, UndeclaredInput.objects):
            read = rows.filter(dataset_version__in=doubts).order_by("-pk").values_list("run", "dataset_version")
            for run, version in read[: 2 * HELD_AGAINST]:
                entries = facts.doubted.setdefault(run, [])
                entries += [doubts[version]] if doubts[version] not in entries else []
    facts.groups = _last_failed(since)
    facts.firsts = dict(kept_query.ask(_firsts, runs=earliest)) if earliest else {}
    for run, keys in kept_query.ask(_seen, since=since):
        facts.seen.setdefault(run, set()).update(keys)
    return facts


def _ended(since: Any) -> "QuerySet[Any, Any]":
    columns = (
        "pk", "number", "status", "benchmark_id", "contract_id", "agent_id", "agent_version_id", "agent_version__number", "agent__name",
        "spent_gpu_ms", "spent_api_micros", "started_at", "ended_at",
    )  # fmt: skip
    return Run.objects.filter(ended_at__gte=since).order_by("-ended_at", "-pk").values_list(*columns)[:HELD_AGAINST]


def _scores(since: Any) -> "QuerySet[Any, Any]":
    """Values of contracts' metrics that were not withdrawn. A run has one at most under its own contract; a score is written as its run ends, so
    that its own time serves."""
    rows = standing().filter(created_at__gte=since, metric=F("contract__metric"))
    columns = ("run_id", "benchmark_id", "contract_id", "value", "standard_error", "credited")
    newest: QuerySet[Any, Any] = credited(rows).order_by("-created_at").values_list(*columns)[: 2 * HELD_AGAINST]
    return newest


def _undeclared(since: Any) -> "QuerySet[Any, Any]":
    rows = UndeclaredInput.objects.filter(created_at__gte=since).order_by().values("run_id")
    thing = Concat(*(part for name in THING for part in (name, Value("\x1f"))), output_field=TextField())
    return rows.annotate(count=Count(thing, distinct=True)).values_list("run_id", "count")  # what many versions hold is one thing


def _earliest(history: list[_Ended], looked: list[_Ended]) -> list[uuid.UUID]:
    """Of the runs that are looked at those that began before all others of their agent's version in `history`: no other can be its first."""
    began: dict[uuid.UUID, datetime] = {}
    for run in history:
        if run.began is not None:
            began[run.version] = min(run.began, began.get(run.version, run.began))
    return [run.pk for run in looked if run.began is not None and run.began == began[run.version]]


def _firsts(runs: Any) -> "QuerySet[Any, Any]":
    """Of these the runs before which none of their agent's version began, and whether none of the agent did. An earlier one, where there is one,
    ends the search, so that this costs the same however many runs there are."""
    earlier = Run.objects.filter(started_at__lt=OuterRef("started_at")).order_by()
    of_version = Exists(earlier.filter(agent_version=OuterRef("agent_version")))
    of_agent = Exists(earlier.filter(agent=OuterRef("agent")))
    firsts: QuerySet[Any, Any] = Run.objects.filter(~of_version, pk=runs).order_by().values_list("pk", ~of_agent)
    return firsts


def _seen(since: Any) -> "QuerySet[Any, Any]":
    return Review.objects.filter(created_at__gte=since, taken_back_at=None).values_list("run_id", "findings")


def _doubts() -> dict[uuid.UUID, Doubted]:
    """Versions to train on that are contaminated by the last word on them, or whose verdict holds that they are suspicious, by their key."""
    said = said_to_be(State.CONTAMINATED, State.SUSPICIOUS)
    versions = list(DatasetVersion.objects.filter(pk__in=said).select_related("dataset").order_by("-pk")[:DOUBTED])
    found = {}
    for version, verdict in zip(versions, verdicts_of(versions).values(), strict=True):
        if verdict.is_contaminated or verdict.state == State.SUSPICIOUS:
            state = State.CONTAMINATED if verdict.is_contaminated else State.SUSPICIOUS
            found[version.pk] = Doubted(version.pk.hex, version.label, state, version.dataset.slug, version.number)
    return found


def _last_failed(since: datetime) -> dict[uuid.UUID, tuple[str, int]]:
    """The run that failed last of each open cause for which runs fail repeatedly: the cause's key, and how many runs failed so."""
    groups = {group.pk: group for group in failure_groups(is_open=True).filter(count__gte=REPEATED, last_at__gte=since)[:GROUPS]}
    if not groups:
        return {}
    newest = Failure.objects.filter(group__in=groups).order_by("group", "-created_at", "-pk").distinct("group")
    return {run: (group.hex, groups[group].count) for group, run in newest.values_list("group_id", "run_id")}
