"""Orders of the list of runs, and places in them: one value a row, ties broken by the newest first."""

import base64
import binascii
import json
import math
import uuid
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.db.models import (
    Case,
    DecimalField,
    DurationField,
    ExpressionWrapper,
    F,
    FloatField,
    Func,
    JSONField,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    TextField,
    Value,
    When,
)
from django.db.models.expressions import Combinable
from django.db.models.functions import Cast, Coalesce, Extract, Greatest, Least
from django.db.models.lookups import Exact

from runs.models import MetricSeries
from runs.queries.run_columns import OF_SERIES, PARAMETERS, SCORES, Column, column_of
from runs.queries.standing import standing
from workspaces.models import Contract
from workspaces.queries.paging import BadCursor

LARGEST = 2**63 - 1
LARGEST_NUMBER = Decimal("1e308")  # PostgreSQL refuses to make a float of a larger one
SORTS = ("newest", "name", "status", "spent", "score")


@dataclass(frozen=True, slots=True)
class Order:
    """`key` is what rows are ordered by."""

    name: str
    key: Combinable
    descends: bool = False


NEWEST = Order("newest", F("created_at"), descends=True)


def order_of(sort: str, benchmark: str) -> Order:
    """The order that an address names: one of SORTS, or a column, from the largest where a `-` stands before it."""
    match sort:
        case "name":
            return Order("name", F("name"))
        case "status":
            return Order("status", F("status"))
        case "spent":
            return Order("spent", F("spent_gpu_ms"), descends=True)
        case "score":
            return _by_score(benchmark) or replace(NEWEST, name="score")
    return _by_column(sort) or NEWEST


def known_sort(text: str) -> str:
    """The order that is asked for, `newest` where there is none such."""
    return text if text in SORTS or is_sortable(column_of(text.removeprefix("-"))) else "newest"


def is_sortable(column: Column) -> bool:
    """Whether its numbers can order runs; scores of different benchmarks have no order of their own."""
    return column.kind in ("number", "gpu", "seconds", "moment", "parameter", "measure") or column.family == SCORES


def _by_column(sort: str) -> Order | None:
    column = column_of(sort.removeprefix("-"))
    if not is_sortable(column):
        return None
    return Order(sort, _known_first(_number(column), -1.0 if sort.startswith("-") else 1.0))


def _by_score(benchmark: str) -> Order | None:
    """Best first under the benchmark's current contract; other contracts and what is no finite number come last."""
    contract = Contract.objects.filter(benchmark__slug=benchmark).order_by("-version").first() if benchmark else None
    if contract is None:
        return None
    scores = standing().filter(run=OuterRef("pk"), benchmark=contract.benchmark_id, metric=contract.metric, contract=contract.pk)
    sign = -1.0 if contract.direction == Contract.Direction.MAXIMIZE else 1.0
    return Order(f"score-{contract.version}", _known_first(_finite(scores, "value"), sign))


def _known_first(value: Combinable, sign: float) -> Combinable:
    """`value` or its negative; what is missing comes after every number."""
    return Coalesce(Cast(value, FloatField()) * Value(sign), Value(math.inf), output_field=FloatField())


def _finite(rows: "QuerySet[Any]", field: str) -> Subquery:
    """The field of a run's own row; nothing for NaN, which PostgreSQL sorts above infinity, and both infinities.

    Looked up run by run in a unique index: a join was planned wrong, and took 3.6 s for 10,000 runs.
    """
    return Subquery(rows.filter(**{f"{field}__gt": -math.inf, f"{field}__lt": math.inf}).values(field))


def _number(column: Column) -> Combinable:
    """The column's number, finite where there is one."""
    if column.family == PARAMETERS:
        return _parameter(column.source)
    if column.family == SCORES:
        scores = standing().filter(run=OuterRef("pk"), benchmark=OuterRef("benchmark"), metric=column.source)
        return _finite(scores, "value")
    if column.family in OF_SERIES:
        series = MetricSeries.objects.filter(run=OuterRef("pk"), key=column.source)
        return _finite(series, OF_SERIES[column.family])
    if column.kind == "moment":
        return Extract(F(column.source), "epoch")
    if column.kind == "seconds":
        return Extract(ExpressionWrapper(F("ended_at") - F("started_at"), output_field=DurationField()), "epoch")
    return F(column.source)


def _parameter(path: str) -> Combinable:
    """The parameter of that path, else of that very name, where it is a number."""
    parts = path.split(".")
    found = _json_at(parts) if len(parts) == 1 else Coalesce(_json_at(parts), _json_at([path]))
    exact = Func(found, template="(%(expressions)s)::numeric", output_field=DecimalField())
    number = Cast(Greatest(Least(exact, Value(LARGEST_NUMBER)), Value(-LARGEST_NUMBER)), FloatField())
    is_number: Exact[Any] = Exact(Func(found, function="jsonb_typeof", output_field=TextField()), Value("number"))
    return Case(When(is_number, then=number), default=None, output_field=FloatField())


def _json_at(parts: list[str]) -> Func:
    where = Value(parts, output_field=ArrayField(TextField()))
    return Func(F("parameters"), where, template="(%(expressions)s)", arg_joiner=" #> ", output_field=JSONField())


def after(order: Order, cursor: str) -> Q:
    """Rows behind the place that `cursor` names. Raises BadCursor where it was not given out for this order."""
    key, pk = _read(order, cursor)
    beyond = Q(order_key__lt=key) if order.descends else Q(order_key__gt=key)
    return beyond | Q(order_key=key, pk__lt=pk)


def cursor_of(order: Order, key: Any, pk: uuid.UUID) -> str:
    """The place of a row in the order, as text for an address."""
    plain = key.isoformat() if isinstance(key, datetime) else key
    return base64.urlsafe_b64encode(json.dumps([order.name, plain, pk.hex]).encode()).decode().rstrip("=")


def _read(order: Order, cursor: str) -> tuple[Any, uuid.UUID]:
    try:
        name, key, pk = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        if name != order.name:
            raise ValueError("a cursor of another order")
        if isinstance(order.key, F) and order.key.name == "created_at":
            key = datetime.fromisoformat(key).astimezone(UTC)
        elif name in ("name", "status"):
            if "\x00" in key.encode().decode():
                raise ValueError("no name holds NUL")
        elif name == "spent":
            key = int(key)
            if abs(key) > LARGEST:
                raise ValueError("no amount is as large")
        else:
            key = float(key)
        return key, uuid.UUID(pk)
    except (ValueError, TypeError, AttributeError, OverflowError, RecursionError, binascii.Error) as error:
        raise BadCursor("This cursor was not given out for this list; begin again without one.") from error
