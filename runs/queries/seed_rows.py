"""Which scores stand together where a contract ranks over seeds, and in which places: all rows in one pass, with nothing but keys of their scores.

The rules are those of `runs.queries.seed_board`. One statement, since the parameters of each run have to be read, which are most of what it costs:
they are read once, for the board as it is and as it was at another moment. Rows are sorted by a hash of the parameters before the parameters
themselves: those that are equal have one hash, and of others hardly two are ever compared.
"""

import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection
from django.db.models import QuerySet

from runs.admission import EVALUATE
from runs.models import Evaluation
from runs.queries.ties import is_ordinal
from runs.seed_intervals import LARGEST, MEAN
from workspaces import scope
from workspaces.models import Contract

_ROWS = """
WITH score (id, run_id, subject_id, value, created_at) AS NOT MATERIALIZED ({scores}),
measured AS MATERIALIZED (
    SELECT score.id, score.created_at, artifact.run_id AS maker FROM score
    JOIN runs_run AS judge ON judge.workspace_id = %s AND judge.id = score.run_id AND judge.kind = %s
    JOIN runs_artifact AS artifact ON artifact.workspace_id = %s AND artifact.id = score.subject_id
    WHERE score.subject_id IS NOT NULL
){newest},
counted AS (
    SELECT score.id, score.value, score.created_at, score.value BETWEEN -{largest} AND {largest} AS is_usable, {counts},
        run.agent_version_id AS version, CASE WHEN run.parameters ? 'seed' THEN run.parameters - 'seed' ELSE run.parameters END AS alike
    FROM score LEFT JOIN measured ON measured.id = score.id
    JOIN runs_run AS run ON run.workspace_id = %s AND run.id = coalesce(measured.maker, score.run_id){joins}
    OFFSET 0 -- else `alike` is made once more for its hash
),
together AS MATERIALIZED (
    SELECT version, alike, {figures}
    FROM (SELECT *, jsonb_hash_extended(alike, 0) AS hash FROM counted WHERE {counts_ever}) AS hashed GROUP BY hash, version, alike
)
"""
_NEWEST = """,
newest_{at} AS MATERIALIZED (
    SELECT DISTINCT ON (maker) maker, id FROM measured{until} ORDER BY maker, created_at DESC, id DESC
)"""
# A run that was measured counts by its newest measurement, any other by what it told of itself: one run has one score of a metric.
_COUNTS = "{known}(newest_{at}.id IS NULL OR newest_{at}.id = score.id) AS counts_{at}"
_JOIN = """
    LEFT JOIN newest_{at} ON newest_{at}.maker = coalesce(measured.maker, score.run_id)"""
# Added up in the order of the values, so that equal sets have equal means, however they are read.
_FIGURES = """
        {middle} FILTER (WHERE counts_{at} AND is_usable) AS middle_{at}, min(created_at) FILTER (WHERE counts_{at}) AS first_at_{at},
        array_agg(id) FILTER (WHERE counts_{at}) AS scores_{at}, count(*) FILTER (WHERE counts_{at}) AS count_{at},
        bool_and(is_usable) FILTER (WHERE counts_{at}) AS is_ranked_{at}"""
_MIDDLES = {True: "avg(value ORDER BY value)", False: "percentile_cont(0.5) WITHIN GROUP (ORDER BY value)"}
_PLACED = """(
    SELECT {at} AS moment, * FROM (
        SELECT version, alike, scores_{at} AS scores, count_{at} AS count, middle_{at} AS middle, is_ranked_{at} AS is_ranked,
            first_at_{at} AS first_at, {place} AS place, {sharing} AS sharing,
            count(*) OVER () AS total, count(*) FILTER (WHERE is_ranked_{at}) OVER () AS ranked
        FROM together WHERE count_{at} > 0
        WINDOW best AS (ORDER BY is_ranked_{at} DESC, middle_{at} {direction}),
            each AS (ORDER BY is_ranked_{at} DESC, middle_{at} {direction}, first_at_{at}, version, alike)
    ) AS placed {which}
)"""
_SHARING = "count(*) OVER (best RANGE BETWEEN CURRENT ROW AND CURRENT ROW)"
_PAGE = "ORDER BY is_ranked DESC, middle {direction}, first_at, version, alike LIMIT %s OFFSET %s"
_ONE = "WHERE version = %s AND alike = %s::jsonb"


@dataclass(frozen=True, slots=True)
class Placed:
    """A row of the board: `scores` are the keys of those that count in it; `middle` is their mean or median, None where none is usable."""

    scores: list[uuid.UUID]
    count: int
    middle: float | None
    is_ranked: bool
    place: int
    sharing: int
    total: int  # rows of the board
    ranked: int  # of them that have a rank


def page(scores: "QuerySet[Evaluation]", contract: Contract, *, is_lower_better: bool, start: int, size: int) -> list[Placed]:
    """`size` rows of the board of `scores` from the place `start`, in their order."""
    which = _PAGE.format(direction=_direction(is_lower_better)), (size, start)
    return _asked(scores, contract, which, is_lower_better=is_lower_better)[0]


def first(scores: "QuerySet[Evaluation]", contract: Contract, *, until: Sequence[datetime] = ()) -> list[Placed | None]:
    """The first row of the board now, and for each of `until` the first of the board of those that were there; None where there is none."""
    is_lower_better = contract.direction == Contract.Direction.MINIMIZE
    which = _PAGE.format(direction=_direction(is_lower_better)), (1, 0)
    return [next(iter(rows), None) for rows in _asked(scores, contract, which, is_lower_better=is_lower_better, until=until)]


def one(scores: "QuerySet[Evaluation]", contract: Contract, version: uuid.UUID, alike: dict[str, Any]) -> Placed | None:
    """The row of runs of a version with these parameters, whatever their seed; None where there is none."""
    is_lower_better = contract.direction == Contract.Direction.MINIMIZE
    rows = _asked(scores, contract, (_ONE, (version, json.dumps(alike))), is_lower_better=is_lower_better)[0]
    return next(iter(rows), None)


def _direction(is_lower_better: bool) -> str:
    return "ASC" if is_lower_better else "DESC"


def _asked(
    scores: "QuerySet[Evaluation]",
    contract: Contract,
    which: tuple[str, Sequence[Any]],
    *,
    is_lower_better: bool,
    until: Sequence[datetime] = (),
) -> list[list[Placed]]:
    """By moment, now the first."""
    moments, workspace, is_shared = range(len(until) + 1), scope.current_id(), not is_ordinal(contract)
    text, values = scores.order_by().values_list("pk", "run_id", "subject_artifact_id", "value", "created_at").query.sql_with_params()

    def each(template: str, between: str = "", **parts: str) -> str:
        return between.join(template.format(at=at, **parts) for at in moments)

    newest = "".join(_NEWEST.format(at=at, until=" WHERE created_at <= %s" if at else "") for at in moments)
    sql = _ROWS.format(
        scores=text,
        newest=newest,
        largest=repr(LARGEST),
        counts=", ".join(_COUNTS.format(at=at, known="score.created_at <= %s AND " if at else "") for at in moments),
        joins=each(_JOIN),
        figures=each(_FIGURES, ",", middle=_MIDDLES[contract.over_seeds == MEAN]),
        counts_ever=each("counts_{at}", " OR "),
    ) + each(
        _PLACED,
        " UNION ALL ",
        place="rank() OVER best" if is_shared else "row_number() OVER each",
        sharing=_SHARING if is_shared else "1",
        direction=_direction(is_lower_better),
        which=which[0],
    )
    found: list[list[Placed]] = [[] for _ in moments]
    with connection.cursor() as cursor:
        cursor.execute(sql, [*values, workspace, EVALUATE, workspace, *until, *until, workspace, *(list(which[1]) * len(moments))])
        for moment, _, _, keys, count, middle, is_ranked, _, place, sharing, total, ranked in cursor.fetchall():
            found[moment].append(Placed(keys, count, middle, is_ranked, place, sharing, total, ranked))
    return found
