"""Scoreboards as their rules say it, row by row, however long that takes: what the fast answers are held against."""

from collections.abc import Sequence
from typing import Any

from django.contrib.postgres.aggregates import ArrayAgg
from django.db.models import Aggregate, Case, Count, F, FloatField, IntegerField, Min, OuterRef, Q, QuerySet, Subquery, Value, When, Window
from django.db.models.functions import Rank, RowNumber

from runs.models import Evaluation
from runs.queries.ranking import FINITE, best_first
from runs.queries.seed_board import ALIKE, IS_OWN, MAKER, every_score
from runs.queries.standing import standing
from runs.queries.ties import is_ordinal
from runs.seed_intervals import LARGEST, MEAN
from workspaces.contract_metrics import Metric
from workspaces.models import Contract


def place(ordinal: bool, by: Sequence[Any], then: Sequence[Any]) -> Window:
    """The rank of each row in the order `by`; `then` tells those apart that are equal in it."""
    if ordinal:
        return Window(RowNumber(), order_by=[*by, *then], output_field=IntegerField())
    return Window(Rank(), order_by=[*by], output_field=IntegerField())


def sharing(ordinal: bool, equal: Sequence[str]) -> Any:
    """How many rows have the rank of this one; rows are equal that are in the columns `equal`."""
    return Value(1, output_field=IntegerField()) if ordinal else Window(Count(Value(1)), partition_by=[F(name) for name in equal])


def ranked(rows: "QuerySet[Evaluation]", direction: str, *, ordinal: bool = False) -> "QuerySet[Evaluation]":
    """The rows in their order, each with `is_unranked` (0 or 1), `place`, which ties share unless `ordinal`, and `sharing`, how many do."""
    by_value, *ties = best_first(direction)
    rows = rows.annotate(is_unranked=Case(When(FINITE, then=Value(0)), default=Value(1), output_field=IntegerField()))
    rows = rows.annotate(place=place(ordinal, ["is_unranked", by_value], ties), sharing=sharing(ordinal, ["is_unranked", "value"]))
    return rows.order_by("is_unranked", by_value, *ties)


def with_ranks(
    rows: "QuerySet[Evaluation]", contract: Contract, leading: Metric, metrics: Sequence[str], lower: Sequence[str] = ()
) -> "QuerySet[Evaluation]":
    """The rows of `ranked`, each with `rank_0` by its score and `rank_1`… by `metrics`, of which each row looks for its own value."""
    ranks: dict[str, Any] = {}
    for number, metric in enumerate(metrics, start=1):
        of_the_same = Q(subject_artifact=OuterRef("subject_artifact")) | Q(subject_artifact=None)
        of = {"benchmark": contract.benchmark_id, "contract": contract, "metric": metric}
        reported = standing().filter(of_the_same, FINITE, **of, run=OuterRef("run")).values("value")
        found = Case(When(Q(is_unranked=0), then=Subquery(reported)), default=None, output_field=FloatField())
        rows = rows.annotate(**{f"value_{number}": found})
        ranks[f"rank_{number}"] = _rank(F(f"value_{number}"), falls=metric not in lower)
    finite = Case(When(is_unranked=0, then=F("value")), default=None, output_field=FloatField())
    by_score = finite.asc(nulls_last=True) if leading.is_lower_better else finite.desc(nulls_last=True)
    ranks["rank_0"] = place(is_ordinal(contract), [by_score], [F("created_at").asc(), F("pk").asc()])
    return rows.annotate(**ranks)


def _rank(value: F, *, falls: bool) -> Window:
    order = value.desc(nulls_last=True) if falls else value.asc(nulls_last=True)
    return Window(Rank(), order_by=[order], output_field=IntegerField())


USABLE = Q(value__gte=-LARGEST, value__lte=LARGEST)
EARLIER = ("first_at", *ALIKE)


class _OrderedMean(Aggregate):
    function = "AVG"
    template = "%(function)s(%(expressions)s ORDER BY %(expressions)s)"
    output_field = FloatField()


class _Median(Aggregate):
    function = "PERCENTILE_CONT"
    template = "%(function)s(0.5) WITHIN GROUP (ORDER BY %(expressions)s)"
    output_field = FloatField()


def rows_over_seeds(scores: "QuerySet[Evaluation]", contract: Contract, leading: Metric) -> list[dict[str, Any]]:
    """All rows of the board over seeds in their order: `version`, `alike`, `together`, `is_unranked`, `place`, `sharing`, `count`, `first_at` and
    `scores`, the keys of those that count."""
    newest = Window(RowNumber(), partition_by=[MAKER], order_by=[IS_OWN, F("created_at").desc(), F("pk").desc()])
    counting = [row.pk for row in scores.order_by().annotate(nth=newest) if getattr(row, "nth") == 1]
    found = every_score(scores.filter(pk__in=counting)).order_by().values(*ALIKE).annotate(
        together=_OrderedMean("value", filter=USABLE) if contract.over_seeds == MEAN else _Median("value", filter=USABLE),
        count=Count("pk"),
        usable=Count("pk", filter=USABLE),
        first_at=Min("created_at"),
        scores=ArrayAgg("pk"),
    )  # fmt: skip
    is_unranked = Case(When(usable=F("count"), then=Value(0)), default=Value(1), output_field=IntegerField())
    ordinal = is_ordinal(contract)
    by_value = F("together").asc() if leading.is_lower_better else F("together").desc()
    placed = found.annotate(is_unranked=is_unranked).annotate(
        place=place(ordinal, [F("is_unranked").asc(), by_value], [F(name).asc() for name in EARLIER]),
        sharing=sharing(ordinal, ["is_unranked", "together"]),
    )
    return list(placed.order_by("is_unranked", by_value, *EARLIER))
