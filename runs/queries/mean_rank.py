"""Ranks over several metrics (feature 35): where each row of a scoreboard stands by each metric shown, and the mean and median of that.

The whole value counts in every column. By its score a row has the rank that it has on the board, by the contract's tie rule; in the columns equal
values share a rank. A row without a finite number in a
column stands behind all that have one, in either direction, and shares that place with the others that have none: reporting less never helps.
A row whose score is no finite number has no rank at all.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from statistics import mean, median
from typing import Any

from django.db.models import Case, Expression, F, FloatField, IntegerField, OuterRef, Q, QuerySet, Subquery, Value, When, Window
from django.db.models.functions import Greatest, Least, Rank

from runs.models import Evaluation
from runs.queries.standing import standing
from runs.queries.ties import is_ordinal, place
from workspaces.contract_metrics import Metric
from workspaces.models import Contract

INFINITY = float("inf")


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


def with_ranks(
    rows: "QuerySet[Evaluation]", contract: Contract, metrics: Sequence[str], lower: Sequence[str] = (), *, leading: Metric | None = None
) -> "QuerySet[Evaluation]":
    """The rows, marked by `scoreboard.ranked`, each with `rank_0` by its score and `rank_1`… by `metrics`; `lower`: metrics whose smaller values
    are better. At most four metrics."""
    for number, metric in enumerate(metrics, start=1):
        of_the_same = Q(subject_artifact=OuterRef("subject_artifact")) | Q(subject_artifact=None)
        reported = (
            standing()
            .filter(
                of_the_same,
                benchmark=contract.benchmark_id,
                contract=contract,
                metric=metric,
                run=OuterRef("run"),
                value__gt=-INFINITY,
                value__lt=INFINITY,
            )
            .values("value")
        )
        found = Case(When(Q(is_unranked=0), then=Subquery(reported)), default=None, output_field=FloatField())
        rows = rows.annotate(**{f"value_{number}": found})
    finite = Case(When(is_unranked=0, then=F("value")), default=None, output_field=FloatField())
    falls = not (leading or contract.primary).is_lower_better
    earlier = [F("created_at").asc(), F("pk").asc()]
    by_score = finite.desc(nulls_last=True) if falls else finite.asc(nulls_last=True)
    ranks: dict[str, Any] = {"rank_0": place(is_ordinal(contract), [by_score], earlier)}
    for number, metric in enumerate(metrics, start=1):
        ranks[f"rank_{number}"] = _rank(F(f"value_{number}"), falls=metric not in lower)
    return rows.annotate(**ranks)


def ranks_of(row: Evaluation, columns: int) -> Ranks:
    """Of a row of `with_ranks`, with so many metrics beside the score."""
    return Ranks(tuple(getattr(row, f"rank_{number}") for number in range(columns + 1)))


def by_mean(columns: int) -> Any:
    """The expression that orders rows of `with_ranks` by their mean rank: the sum of as many ranks for each of them, a whole number."""
    return reduce(add, _names(columns))


def by_median(columns: int) -> Any:
    """As `by_mean`, by the median: twice its value, a whole number. PostgreSQL has no median of values in one row; of up to five, least and
    greatest give it."""
    ranks = _names(columns)
    match ranks:
        case [first]:
            return first + first
        case [first, second]:
            return first + second
        case [_, _, _]:
            return _twice(_middle(*ranks))
        case [_, _, _, _]:
            return reduce(add, ranks) - Greatest(*ranks) - Least(*ranks)
        case [a, b, c, d, e]:
            # The largest of the smaller, and the smallest of the larger, of two pairs: the median of five is the middle of these and the fifth.
            return _twice(_middle(e, Greatest(Least(a, b), Least(c, d)), Least(Greatest(a, b), Greatest(c, d))))
    raise ValueError(f"{len(ranks)} ranks; there are five at most")


def _names(columns: int) -> list[Any]:
    return [F(f"rank_{number}") for number in range(columns + 1)]


def _middle(a: Any, b: Any, c: Any) -> Any:
    return Greatest(Least(a, b), Least(Greatest(a, b), c))


def _twice(expression: Any) -> Any:
    return expression * Value(2)


def _rank(value: Expression | F, *, falls: bool) -> Window:
    order = value.desc(nulls_last=True) if falls else value.asc(nulls_last=True)
    return Window(Rank(), order_by=[order], output_field=IntegerField())
