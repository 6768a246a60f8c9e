"""Curves of a run: its series with their summaries, the points of one series in order, and curves thinned to what a screen can show."""

import math
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.db import connection
from django.db.models import QuerySet

from runs.models import MetricSeries, Run
from workspaces import kept_query, scope

PIECE_POINTS = 10_000
FINITE = 1e308  # seconds beyond are no times, and the database's arithmetic would refuse them


class MetricPoint(NamedTuple):
    """`step` as the run wrote it, `value` a number, NaN or an infinity, `seconds` UTC."""

    step: int
    value: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Points:
    """Points of one series by step, and how many it has in all."""

    items: list[MetricPoint]
    count: int


_BEFORE = (-1, uuid.UUID(int=0), 0)  # attempt, chunk and place before any other of a step


class _Span(NamedTuple):
    """The steps of one chunk that count: from `low` to `high`, both included, fewer than `ends` where that is given."""

    low: int
    high: int
    ends: int | None
    points: int
    chunk_id: uuid.UUID


def series_of(run: Run, text: str = "") -> list[MetricSeries]:
    """The run's series by name; `text` narrows to those whose name holds it."""
    if not text:
        return kept_query.ask(_series, run=run.pk)
    return list(_series(run.pk).filter(key__icontains=text))


def _series(run: Any) -> "QuerySet[MetricSeries]":
    return MetricSeries.objects.filter(run=run).order_by("key")


def find_series(run: Run, key: str) -> MetricSeries | None:
    return MetricSeries.objects.filter(run=run, key=key).first()


# What a series stands for: a later attempt that goes over steps again replaces what an earlier one wrote from there on. `ends` is the first
# step of all later attempts, from which on a chunk no longer counts.
_CHUNKS = """
WITH chunk AS (
    SELECT id, series_id, attempt_number, steps, "values", times, min(begins) OVER (
               PARTITION BY series_id ORDER BY attempt_number DESC GROUPS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
           ) AS ends
      FROM (SELECT *, (SELECT min(step) FROM unnest(steps) AS step) AS begins
              FROM runs_metricchunk WHERE workspace_id = %(workspace)s AND series_id = ANY(%(series)s)) AS written
)
"""
_POINTS = """
SELECT step, value, seconds, count(*) OVER ()
  FROM chunk CROSS JOIN LATERAL unnest(steps, "values", times) WITH ORDINALITY AS point (step, value, seconds, place)
 WHERE ends IS NULL OR step < ends
 ORDER BY step, attempt_number, id, place LIMIT %(limit)s
"""
_SPANS = """
SELECT bounds.low, least(bounds.high, ends - 1), ends, cardinality(steps), id
  FROM chunk CROSS JOIN LATERAL (SELECT min(step), max(step) FROM unnest(steps) AS step) AS bounds (low, high)
 WHERE ends IS NULL OR bounds.low < ends ORDER BY bounds.low, id
"""
_PIECE = """
, chosen AS (SELECT * FROM unnest(%(chunks)s::uuid[], %(ends)s::bigint[]) AS chosen (id, ends))
SELECT step, value, seconds, attempt_number, written.id, place
  FROM runs_metricchunk AS written JOIN chosen USING (id)
 CROSS JOIN LATERAL unnest(steps, "values", times) WITH ORDINALITY AS point (step, value, seconds, place)
 WHERE workspace_id = %(workspace)s AND (chosen.ends IS NULL OR step < chosen.ends) AND (%(below)s::bigint IS NULL OR step < %(below)s)
   AND (step, attempt_number, written.id, place) > (%(step)s, %(attempt)s, %(chunk)s, %(place)s)
 ORDER BY step, attempt_number, written.id, place LIMIT %(limit)s
"""
# At most two points a column, its lowest and highest, so that a spike one step wide is still there at a million points; the last point has a
# column of its own, so that a curve ends where the series ends. Where no number of a column can be drawn, there is a gap.
_CURVES = """
, point AS MATERIALIZED (
    SELECT series_id, x, value
      FROM chunk CROSS JOIN LATERAL unnest(steps, "values", times) AS written (step, value, seconds)
     CROSS JOIN LATERAL (VALUES (CASE WHEN %(by_time)s THEN seconds ELSE step END)) AS axis (x)
     WHERE (ends IS NULL OR step < ends) AND x BETWEEN -%(finite)s AND %(finite)s
), span AS (
    SELECT series_id, min(x) AS low, max(x) AS high, count(*) <= 2 * %(columns)s OR min(x) = max(x) AS is_short FROM point GROUP BY series_id
), columned AS (
    SELECT series_id, x, value, CASE WHEN is_short THEN x ELSE width_bucket(x, low, high, %(columns)s) END AS at,
           value > %(above)s AND value < 'Infinity' AS is_drawn
      FROM point JOIN span USING (series_id)
), extreme AS (
    SELECT series_id, min(x) AS x, min(ARRAY[value, x]) FILTER (WHERE is_drawn) AS low, max(ARRAY[value, x]) FILTER (WHERE is_drawn) AS high
      FROM columned GROUP BY series_id, at
)
SELECT array_position(%(series)s, series_id), x, low[1], low[2], high[1], high[2] FROM extreme ORDER BY series_id, x
"""


def points(series: MetricSeries, *, limit: int | None = None) -> Points:
    """The series' points by step, at most `limit` of them."""
    rows = _rows(_POINTS, [series], limit=limit)
    return Points([MetricPoint(*row[:3]) for row in rows], rows[0][3] if rows else 0)


def points_in_pieces(series: MetricSeries) -> Iterator[list[MetricPoint]]:
    """All points of `points`, in the same order, at most `PIECE_POINTS` at a time; what is written meanwhile is not among them. Each piece asks
    the database anew, in the scope that is open then, and of the chunks that its steps can be in only."""
    spans = [_Span(*row) for row in _rows(_SPANS, [series])]
    step, rest = -(2**63), _BEFORE
    while spans := [span for span in spans if span.high >= step]:
        if spans[0].low > step:
            step, rest = spans[0].low, _BEFORE
        chosen, below = _first_of(spans, step)
        rows = _rows(
            _PIECE,
            [series],
            chunks=[span.chunk_id for span in chosen],
            ends=[span.ends for span in chosen],
            below=below,
            step=step,
            **dict(zip(("attempt", "chunk", "place"), rest, strict=True)),
            limit=PIECE_POINTS,
        )
        if rows:
            yield [MetricPoint(*row[:3]) for row in rows]
        if len(rows) == PIECE_POINTS:
            step, rest = rows[-1][0], rows[-1][3:]
        elif below is None:
            return
        else:
            step, rest = below, _BEFORE


def _first_of(spans: list[_Span], step: int) -> tuple[list[_Span], int | None]:
    """Of spans by their beginnings: those that a piece from `step` on can be in, and the step that it stays below, above which others begin."""
    points = 0
    for count, span in enumerate(spans):
        if points >= PIECE_POINTS and span.low > step:
            return spans[:count], span.low
        points += span.points
    return spans, None


def curves(
    series: list[MetricSeries], *, columns: int, by_time: bool = False, is_log: bool = False
) -> dict[str, list[tuple[float, float]]]:
    """What a chart `columns` wide can show of each series, by key: (x, value) in order of x; NaN where there is a gap.

    x is the step, or with `by_time` the seconds since the first point that is drawn. With `is_log` only values above zero are drawn.
    """
    asked = {"columns": columns, "by_time": by_time, "above": 0.0 if is_log else -math.inf, "finite": FINITE}
    rows = _rows(_CURVES, series, **asked)
    found: list[list[tuple[float, float]]] = [[] for _ in series]
    for number, x, low, low_x, high, high_x in rows:
        drawn = found[number - 1]
        if low is None:
            drawn.append((x, math.nan))
        elif low == high:
            drawn.append((low_x, low))
        else:
            drawn.extend(((low_x, low), (high_x, high)) if low_x <= high_x else ((high_x, high), (low_x, low)))
    if by_time:
        found = [[(x - drawn[0][0], y) for x, y in drawn] for drawn in found]
    return {entry.key: drawn for entry, drawn in zip(series, found, strict=True)}


def _rows(statement: str, series: list[MetricSeries], **values: Any) -> list[tuple[Any, ...]]:
    """One statement over the points of series that the open workspace's manager has found; row security stands behind it."""
    if not series:
        return []
    with connection.cursor() as cursor:
        cursor.execute(_CHUNKS + statement, {"workspace": scope.current_id(), "series": [entry.pk for entry in series], **values})
        rows: list[tuple[Any, ...]] = cursor.fetchall()
        return rows
