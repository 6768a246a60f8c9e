"""Ranks over several metrics (feature 35): where each row of a scoreboard stands by each metric shown, and the mean and median of that.

The whole value counts in every column. By its score a row has the rank that it has on the board, by the contract's tie rule; in the columns equal
values share a rank. A row without a finite number in a column stands behind all that have one, in either direction, and shares that place with the
others that have none: reporting less never helps. A row whose score is no finite number has no rank at all.

A page by score counts, of each column, what lies between two neighbouring values of its rows; nothing is sorted. A page by mean or median rank wants
the ranks of all rows: of each column the values are sorted by themselves, and each row looks up where its value stands among them.
"""

from bisect import bisect_left
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from statistics import mean, median
from typing import Any
from uuid import UUID

from django.contrib.postgres.fields import ArrayField
from django.db import connection
from django.db.models import Count, Exists, F, FloatField, Func, IntegerField, OuterRef, Q, QuerySet, Value
from django.db.models.lookups import IsNull

from runs.models import Evaluation
from runs.queries.ranking import FINITE, NO_NUMBERS, mark, rows_of, shared_by
from runs.queries.standing import standing
from workspaces.contract_metrics import Metric
from workspaces.models import Contract

_PAGE = """
WITH joined AS MATERIALIZED (
    SELECT led.id, led.created_at, led.value AS value_0{values} FROM ({rows}) AS led (id, run_id, subject_id, value, created_at){beside}
), sorted AS MATERIALIZED (SELECT {sorted} FROM joined)
SELECT id, {names} FROM (SELECT id, created_at, {places} FROM joined) AS placed ORDER BY {together}, created_at, id LIMIT %s OFFSET %s
"""
_BESIDE = """
LEFT JOIN ({rows}) AS column_{at} (run_id, subject_id, value)
ON column_{at}.run_id = led.run_id AND (column_{at}.subject_id IS NULL OR column_{at}.subject_id = led.subject_id)
"""
_SORTED = "array_agg({sign}value_{at} ORDER BY {sign}value_{at}) FILTER (WHERE value_{at} IS NOT NULL) AS all_{at}"
# All are better but those that are not above it, and itself: of values that are NULL, all.
_PLACE = "1 + (SELECT coalesce(cardinality(all_{at}), 0) FROM sorted) - coalesce(width_bucket({sign}value_{at}, (SELECT all_{at} FROM sorted)), 0)"
_ORDINAL = "row_number() OVER (ORDER BY value_0 {direction}, created_at, id)"


@dataclass(frozen=True, slots=True)
class Ranks:
    """The places by each metric, the score's first."""

    of: tuple[int, ...]

    @property
    def mean(self) -> float:
        return mean(self.of)

    @property
    def median(self) -> float:
        return median(self.of)


@dataclass(frozen=True, slots=True)
class Columns:
    """Metrics beside the score under a contract; of those in `lower` smaller values are better. At most four."""

    contract: Contract
    metrics: tuple[str, ...]
    lower: Collection[str] = ()

    def reported(self, *metrics: str) -> "QuerySet[Evaluation]":
        of = {"benchmark": self.contract.benchmark_id, "contract": self.contract.pk}
        return standing().filter(FINITE, **of, metric__in=metrics).order_by()


class _Bucket(Func):
    """How many of the bounds, which rise, are not above the value."""

    function = "WIDTH_BUCKET"
    output_field = IntegerField()


def ranks_beside(page: Sequence[Evaluation], columns: Columns, **of: Any) -> dict[UUID, Ranks]:
    """Ranks of the rows of a page that `page_of` has marked, among all that `rows_of` has. One query, and one for each column."""
    ranked = [row for row in page if not getattr(row, "is_unranked")]
    if not ranked:
        return {}
    signs = {metric: 1.0 if metric in columns.lower else -1.0 for metric in columns.metrics}  # by these the least is the best
    found = {
        (run, metric): (subject, value * signs[metric])
        for run, metric, subject, value in columns.reported(*columns.metrics)
        .filter(run__in={row.run_id for row in ranked})
        .values_list("run_id", "metric", "subject_artifact_id", "value")
    }

    def value_of(row: Evaluation, metric: str) -> float | None:
        subject, value = found.get((row.run_id, metric), (None, None))
        return value if subject in (None, row.subject_artifact_id) else None

    values = {metric: [value_of(row, metric) for row in ranked] for metric in columns.metrics}
    places = {metric: _places_among(signs[metric], values[metric], columns.reported(metric), rows_of(**of)) for metric in columns.metrics}
    return {row.pk: Ranks((getattr(row, "place"), *(of_column[at] for of_column in places.values()))) for at, row in enumerate(ranked)}


def _places_among(sign: float, values: list[float | None], reported: "QuerySet[Evaluation]", rows: "QuerySet[Evaluation]") -> list[int]:
    bounds = sorted({value for value in values if value is not None})
    same = Q(subject_artifact=OuterRef("subject_artifact")) | Q(IsNull(OuterRef("subject_artifact"), True))
    beside = reported.filter(Exists(rows.filter(FINITE, same, run=OuterRef("run"))))
    bucket = _Bucket(F("value") * Value(sign), Value(bounds, output_field=ArrayField(FloatField())))
    counts = dict(beside.annotate(bucket=bucket).values_list("bucket").annotate(Count("pk")))
    before, ahead = 0, []
    for place in range(len(bounds) + 1):
        before += counts.get(place, 0)
        ahead.append(before)
    return [1 + ahead[len(bounds) if value is None else bisect_left(bounds, value)] for value in values]


def page_by_ranks(
    leading: Metric, columns: Columns, *, by_median: bool, ordinal: bool, ranked: int, start: int, size: int, **of: Any
) -> tuple[list[Evaluation], dict[UUID, Ranks]]:
    """`size` rows from the place `start` by their mean or median rank, of equal ones the earliest first, marked as `page_of` marks them; `ranked`
    of them all have a rank. With the ranks of those that have one."""
    ranks = _in_order(leading, columns, by_median=by_median, ordinal=ordinal, start=start, size=size, **of)
    rows = {row.pk: row for row in rows_of(**of | {"pk": [*ranks]})} if ranks else {}
    shared = shared_by({row.value for row in rows.values()}, **of) if not ordinal else {}
    page = [mark(rows[key], is_unranked=0, place=found.of[0], sharing=shared.get(rows[key].value, 1)) for key, found in ranks.items()]
    if len(page) < size:
        first = max(0, start - ranked)
        others = rows_of(**of).filter(value__in=NO_NUMBERS).order_by("created_at", "pk")[first : first + size - len(page)]
        page += [mark(row, is_unranked=1, place=None, sharing=1) for row in others]
    return page, ranks


def _in_order(leading: Metric, columns: Columns, *, by_median: bool, ordinal: bool, start: int, size: int, **of: Any) -> dict[UUID, Ranks]:
    rows, values = _text(rows_of(**of).filter(FINITE).order_by(), "pk", "run_id", "subject_artifact_id", "value", "created_at")
    beside = [_text(columns.reported(metric), "run_id", "subject_artifact_id", "value") for metric in columns.metrics]
    # Of the values so signed the larger ones are better.
    signs = ["-" if leading.is_lower_better else "", *("-" if metric in columns.lower else "" for metric in columns.metrics)]
    places = [_PLACE.format(at=at, sign=sign) for at, sign in enumerate(signs)]
    if ordinal:
        places[0] = _ORDINAL.format(direction="ASC" if leading.is_lower_better else "DESC")
    names = [f"rank_{at}" for at in range(len(signs))]
    sql = _PAGE.format(
        values="".join(f", column_{at}.value AS value_{at}" for at in range(1, len(signs))),
        rows=rows,
        beside="".join(_BESIDE.format(rows=text, at=at) for at, (text, _) in enumerate(beside, start=1)),
        sorted=", ".join(_SORTED.format(at=at, sign=sign) for at, sign in enumerate(signs)),
        names=", ".join(names),
        places=", ".join(f"{place} AS {name}" for place, name in zip(places, names, strict=True)),
        together=_twice_median(names) if by_median else " + ".join(names),
    )
    with connection.cursor() as cursor:
        cursor.execute(sql, [*values, *(value for _, found in beside for value in found), size, start])
        return {key: Ranks(tuple(ranks)) for key, *ranks in cursor.fetchall()}


def _text(rows: "QuerySet[Evaluation]", *columns: str) -> tuple[str, tuple[Any, ...]]:
    return rows.values_list(*columns).query.sql_with_params()


def _twice_median(ranks: Sequence[str]) -> str:
    """PostgreSQL has no median of values in one row; of up to five, least and greatest give it."""
    match ranks:
        case [first]:
            return f"2 * {first}"
        case [first, second]:
            return f"{first} + {second}"
        case [_, _, _]:
            return f"2 * {_middle(*ranks)}"
        case [_, _, _, _]:
            every = ", ".join(ranks)
            return f"{' + '.join(ranks)} - greatest({every}) - least({every})"
        case [a, b, c, d, e]:
            # The largest of the smaller, and the smallest of the larger, of two pairs: the median of five is the middle of these and the fifth.
            smaller, larger = (
                f"{outer}({inner}({a}, {b}), {inner}({c}, {d}))" for outer, inner in (("greatest", "least"), ("least", "greatest"))
            )
            return f"2 * {_middle(e, smaller, larger)}"
    raise ValueError(f"{len(ranks)} ranks; there are five at most")


def _middle(a: str, b: str, c: str) -> str:
    return f"greatest(least({a}, {b}), least(greatest({a}, {b}), {c}))"
