"""The list of runs: filtered, ordered, in keyset pages, with as many queries for ten thousand rows as for one."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any
from zoneinfo import ZoneInfo

from django.db.models import F, Q, QuerySet

from runs.lifecycle import ACTIVE, TERMINAL, RunStatus
from runs.models import Evaluation, Run
from runs.queries.run_columns import OF_SERIES, PARAMETERS, SCORES, Column, fields_of, measured, parameter_at
from runs.queries.run_order import after, cursor_of, order_of
from workspaces.models import Agent, Benchmark, Pool, User
from workspaces.queries.paging import Page
from workspaces.windows import first_instant

PAGE_SIZE = 50
R = RunStatus
FAILURES = frozenset({R.FAILED, R.TIMED_OUT, R.ABORTED, R.LOST})
GROUPS: dict[str, frozenset[RunStatus]] = {
    "waiting": frozenset({R.DRAFT, R.AWAITING_APPROVAL, R.QUEUED, R.AWAITING_INPUT}),
    "active": ACTIVE,
    "open": frozenset(RunStatus) - TERMINAL,
    "ended": TERMINAL,
    "failures": FAILURES,
}


@dataclass(frozen=True, slots=True)
class RunFilter:
    """What the address asks for; every empty value asks for nothing. Slugs and names, so that an address can be read and shared."""

    text: str = ""
    status: str = ""  # a status or a key of GROUPS
    benchmark: str = ""
    agent: str = ""
    pool: str = ""
    person: str = ""  # username
    since: date | None = None
    hides_failures: bool = False
    sort: str = "newest"  # runs.queries.run_order.order_of


@dataclass(frozen=True, slots=True)
class RunRow:
    """One line of the list; a run's score is its value of the contract's metric under the contract it ran with."""

    id: uuid.UUID
    name: str
    number: int
    status: str
    reason: str
    benchmark: str
    contract: int
    agent: str
    agent_version: int
    pool: str
    person: str
    username: str
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    spent_gpu_ms: int
    reserved_gpu_ms: int
    score: float | None = None
    error: float | None = None
    policy: str = ""  # the name of the policy that launched it in this person's name, and its slug
    policy_slug: str = ""
    chosen: Mapping[str, Any] = field(default_factory=dict)  # values of the columns that were asked for, by their names

    def seconds(self, now: datetime) -> float | None:
        """How long it has run so far, or ran."""
        return None if self.started_at is None else ((self.ended_at or now) - self.started_at).total_seconds()


@dataclass(frozen=True, slots=True)
class Choices:
    """What the filters offer: names that stand in this workspace."""

    benchmarks: list[tuple[str, str]]
    agents: list[tuple[str, str]]
    pools: list[tuple[str, str]]
    people: list[tuple[str, str]]


COLUMNS = {
    "id": "pk", "name": "name", "number": "number", "status": "status", "reason": "reason", "benchmark": "benchmark__slug",
    "contract": "contract__version", "agent": "agent__slug", "agent_version": "agent_version__number", "pool": "pool__slug",
    "created_at": "created_at", "started_at": "started_at", "ended_at": "ended_at", "spent_gpu_ms": "spent_gpu_ms",
    "reserved_gpu_ms": "reserved_gpu_ms",
}  # fmt: skip


def choices() -> Choices:
    asked = User.objects.filter(pk__in=Run.objects.values("requested_by")).order_by("display_name", "username")
    return Choices(
        benchmarks=list(Benchmark.objects.order_by("name", "slug").values_list("slug", "name")),
        agents=list(Agent.objects.order_by("name", "slug").values_list("slug", "name")),
        pools=[(slug, slug) for slug in Pool.objects.order_by("slug").values_list("slug", flat=True)],
        people=[(person.username, person.label) for person in asked],
    )


def matching(wanted: RunFilter, zone: str) -> "QuerySet[Run]":
    """The runs that `wanted` names, in no order; `zone` is the workspace's, in which a day begins."""
    runs = Run.objects.all()
    if wanted.text:
        number = wanted.text.removeprefix("#")
        named = Q(name__icontains=wanted.text)
        runs = runs.filter(named | Q(number=int(number)) if number.isascii() and number.isdigit() and len(number) < 10 else named)
    if wanted.status:
        runs = runs.filter(status__in=sorted(GROUPS.get(wanted.status, {wanted.status})))
    for path, value in (("benchmark__slug", wanted.benchmark), ("agent__slug", wanted.agent), ("pool__slug", wanted.pool)):
        if value:
            runs = runs.filter(**{path: value})
    if wanted.person:
        runs = runs.filter(requested_by__username=wanted.person)
    if wanted.since:
        runs = runs.filter(created_at__gte=first_instant(wanted.since, ZoneInfo(zone or "UTC")))
    if wanted.hides_failures:
        runs = runs.exclude(status__in=sorted(FAILURES))
    return runs


def page_of_runs(wanted: RunFilter, *, zone: str, cursor: str = "", size: int = PAGE_SIZE, columns: Sequence[Column] = ()) -> Page[RunRow]:
    """One page in the order asked for, with the values of `columns`. Raises BadCursor where the cursor was not given out for this order."""
    order = order_of(wanted.sort, wanted.benchmark)
    runs = matching(wanted, zone).select_related(None).annotate(order_key=order.key)
    if cursor:
        runs = runs.filter(after(order, cursor))
    found = list(
        runs.order_by(F("order_key").desc() if order.descends else F("order_key").asc(), "-pk").values(
            "order_key", person_username=F("requested_by__username"), person_name=F("requested_by__display_name"),
            policy_name=F("sweep__decision__policy__name"), policy_slug=F("sweep__decision__policy__slug"),
            score_metric=F("contract__metric"), **{f"column_{name}": F(path) for name, path in COLUMNS.items()},
            **{f"chosen_{path}": F(path) for path in sorted(fields_of(columns))},
        )[: size + 1]
    )  # fmt: skip
    shown = found[:size]
    last = shown[-1] if len(found) > size else None
    return Page(items=_rows(shown, columns), next=cursor_of(order, last["order_key"], last["column_id"]) if last else None)


def _rows(found: list[dict[str, Any]], columns: Sequence[Column]) -> list[RunRow]:
    runs = [row["column_id"] for row in found]
    scores = {
        (score["run_id"], score["metric"]): (score["value"], score["standard_error"])
        for score in Evaluation.objects.filter(run__in=runs, benchmark=F("run__benchmark")).values(
            "run_id", "metric", "value", "standard_error"
        )
    }
    series = measured(columns, runs)

    def value(row: dict[str, Any], column: Column) -> Any:
        match column.family:
            case "":
                return row.get(f"chosen_{column.source}")
            case family if family == PARAMETERS:
                return parameter_at(row["chosen_parameters"], column.source)
            case family if family == SCORES:
                return scores.get((row["column_id"], column.source))
            case family:
                return series.get((row["column_id"], column.source), {}).get(OF_SERIES[family])

    rows = []
    for row in found:
        score, error = scores.get((row["column_id"], row["score_metric"]), (None, None))
        rows.append(
            RunRow(
                **{name: row[f"column_{name}"] for name in COLUMNS},
                person=row["person_name"] or row["person_username"],
                username=row["person_username"],
                policy=row["policy_name"] or "",
                policy_slug=row["policy_slug"] or "",
                score=score,
                error=error,
                chosen={column.name: value(row, column) for column in columns}
                | ({"sweep_id": row["chosen_sweep_id"]} if "chosen_sweep_id" in row else {}),
            )
        )
    return rows


def sorts_by_score(wanted: RunFilter) -> bool:
    """Scores of different benchmarks have no order; with one chosen, they have."""
    return bool(wanted.benchmark)
