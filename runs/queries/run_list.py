"""The list of runs: filtered, ordered, in keyset pages, with as many queries for ten thousand rows as for one."""

import base64
import binascii
import json
import math
import uuid
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from typing import Any
from zoneinfo import ZoneInfo

from django.db.models import Case, F, FloatField, Q, QuerySet, Value, When
from django.db.models.expressions import Combinable
from django.db.models.functions import Coalesce
from django.db.models.query_utils import FilteredRelation

from runs.lifecycle import ACTIVE, TERMINAL, RunStatus
from runs.models import Evaluation, Run
from workspaces.models import Agent, Benchmark, Contract, Pool, User
from workspaces.queries.paging import BadCursor, Page
from workspaces.windows import first_instant

PAGE_SIZE = 50
LARGEST = 2**63 - 1
R = RunStatus
FAILURES = frozenset({R.FAILED, R.TIMED_OUT, R.ABORTED, R.LOST})
GROUPS: dict[str, frozenset[RunStatus]] = {
    "waiting": frozenset({R.DRAFT, R.AWAITING_APPROVAL, R.QUEUED, R.AWAITING_INPUT}),
    "active": ACTIVE,
    "ended": TERMINAL,
    "failures": FAILURES,
}
SORTS = ("newest", "name", "status", "spent", "score")


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
    sort: str = "newest"


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
    for field, value in (("benchmark__slug", wanted.benchmark), ("agent__slug", wanted.agent), ("pool__slug", wanted.pool)):
        if value:
            runs = runs.filter(**{field: value})
    if wanted.person:
        runs = runs.filter(requested_by__username=wanted.person)
    if wanted.since:
        runs = runs.filter(created_at__gte=first_instant(wanted.since, ZoneInfo(zone or "UTC")))
    if wanted.hides_failures:
        runs = runs.exclude(status__in=sorted(FAILURES))
    return runs


def page_of_runs(wanted: RunFilter, *, zone: str, cursor: str = "", size: int = PAGE_SIZE) -> Page[RunRow]:
    """One page in the order asked for. Raises BadCursor where the cursor was not given out for this order."""
    order = _order(wanted)
    runs = matching(wanted, zone).select_related(None)
    if order.join is not None:
        runs = runs.annotate(scored=order.join)
    runs = runs.annotate(order_key=order.key)
    if cursor:
        runs = runs.filter(_after(order, cursor))
    found = list(
        runs.order_by(F("order_key").desc() if order.descends else F("order_key").asc(), "-pk").values(
            "order_key", person_username=F("requested_by__username"), person_name=F("requested_by__display_name"),
            score_metric=F("contract__metric"), **{f"column_{name}": F(path) for name, path in COLUMNS.items()},
        )[: size + 1]
    )  # fmt: skip
    shown = found[:size]
    last = shown[-1] if len(found) > size else None
    return Page(items=_rows(shown), next=_spell(order.name, last["order_key"], last["column_id"]) if last else None)


def _rows(found: list[dict[str, Any]]) -> list[RunRow]:
    scores = {
        (score["run_id"], score["metric"]): (score["value"], score["standard_error"])
        for score in Evaluation.objects.filter(run__in=[row["column_id"] for row in found], benchmark=F("run__benchmark")).values(
            "run_id", "metric", "value", "standard_error"
        )
    }
    rows = []
    for row in found:
        score, error = scores.get((row["column_id"], row["score_metric"]), (None, None))
        columns = {name: row[f"column_{name}"] for name in COLUMNS}
        rows.append(
            RunRow(
                **columns, person=row["person_name"] or row["person_username"], username=row["person_username"], score=score, error=error
            )
        )
    return rows


@dataclass(frozen=True, slots=True)
class _Order:
    """One value a row, sorted, ties broken by the newest first."""

    name: str
    key: Combinable
    descends: bool = False
    join: FilteredRelation | None = None


def _order(wanted: RunFilter) -> _Order:
    match wanted.sort:
        case "name":
            return _Order("name", F("name"))
        case "status":
            return _Order("status", F("status"))
        case "spent":
            return _Order("spent", F("spent_gpu_ms"), descends=True)
        case "score":
            return _by_score(wanted) or replace(_NEWEST, name="score")
    return _NEWEST


_NEWEST = _Order("newest", F("created_at"), descends=True)


def _by_score(wanted: RunFilter) -> _Order | None:
    """Best first under the benchmark's current contract; other contracts, missing values, NaN and infinities come last."""
    contract = Contract.objects.filter(benchmark__slug=wanted.benchmark).order_by("-version").first() if wanted.benchmark else None
    if contract is None:
        return None
    sign = -1.0 if contract.direction == Contract.Direction.MAXIMIZE else 1.0
    finite = Q(scored__value__gt=-math.inf, scored__value__lt=math.inf)  # PostgreSQL sorts NaN above infinity
    value = Case(When(finite, then=F("scored__value") * Value(sign)), default=None, output_field=FloatField())
    return _Order(
        f"score-{contract.version}",
        Coalesce(value, Value(math.inf), output_field=FloatField()),
        join=FilteredRelation(
            "evaluations",
            condition=Q(
                evaluations__metric=contract.metric, evaluations__contract=contract.pk, evaluations__benchmark=contract.benchmark_id
            ),
        ),
    )


def sorts_by_score(wanted: RunFilter) -> bool:
    """Scores of different benchmarks have no order; with one chosen, they have."""
    return bool(wanted.benchmark)


def _after(order: _Order, cursor: str) -> Q:
    key, pk = _read(order, cursor)
    beyond = Q(order_key__lt=key) if order.descends else Q(order_key__gt=key)
    return beyond | Q(order_key=key, pk__lt=pk)


def _spell(order: str, key: Any, pk: uuid.UUID) -> str:
    plain = key.isoformat() if isinstance(key, datetime) else key
    return base64.urlsafe_b64encode(json.dumps([order, plain, pk.hex]).encode()).decode().rstrip("=")


def _read(order: _Order, cursor: str) -> tuple[Any, uuid.UUID]:
    try:
        name, key, pk = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        if name != order.name:
            raise ValueError("a cursor of another order")
        if isinstance(order.key, F) and order.key.name == "created_at":
            key = datetime.fromisoformat(key).astimezone(UTC)
        elif name in ("name", "status"):
            if "\x00" in key.encode().decode():
                raise ValueError("no name holds NUL")
        else:
            key = float(key) if name.startswith("score") else int(key)
            if isinstance(key, int) and abs(key) > LARGEST:
                raise ValueError("no amount is as large")
        return key, uuid.UUID(pk)
    except (ValueError, TypeError, AttributeError, OverflowError, binascii.Error) as error:
        raise BadCursor("This cursor was not given out for this list; begin again without one.") from error
