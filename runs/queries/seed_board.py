"""The scoreboard of a contract that ranks over seeds: runs that are alike but for the seed are one row, by the mean or the median of their scores.

Alike are runs of the same version of an agent with the same parameters but for `seed`; an evaluation counts for the run that made what it measured.
Each run counts once, however often it was measured: by the newest evaluation of what it made, else by what it reported of itself, as in a promotion.
The rules are those of the other board: by the whole value; equal values by the contract's tie rule, the row whose first score is the earliest first.
A row one of whose scores is no finite number, or beyond LARGEST, has no rank: a seed that failed to give a number is not left out.
"""

import math
import uuid
from dataclasses import dataclass, field, replace
from datetime import datetime
from statistics import fmean, median
from typing import Any

from django.contrib.postgres.aggregates import ArrayAgg
from django.db.models import (
    Aggregate,
    Case,
    Count,
    F,
    FloatField,
    Func,
    IntegerField,
    JSONField,
    Min,
    Q,
    QuerySet,
    UUIDField,
    Value,
    When,
    Window,
)
from django.db.models.functions import Coalesce, RowNumber

from runs.admission import EVALUATE
from runs.models import Evaluation
from runs.queries.standing import standing
from runs.queries.ties import is_ordinal, place, sharing
from runs.seed_intervals import LARGEST, MEAN, Interval, can_be_summed, interval, standard_error
from workspaces.canonical import canonical
from workspaces.contract_metrics import Metric
from workspaces.models import AgentVersion, Contract

MEASURED = Q(run__kind=EVALUATE, subject_artifact__isnull=False)
USABLE = Q(value__gte=-LARGEST, value__lte=LARGEST)  # PostgreSQL's mean of larger ones is an error
ALIKE = ("version", "alike")
EARLIER = ("first_at", *ALIKE)  # tells apart rows whose values are equal
IS_OWN = Case(When(MEASURED, then=Value(0)), default=Value(1), output_field=IntegerField())
MAKER = Case(When(MEASURED, then=F("subject_artifact__run")), default=F("run"), output_field=UUIDField())


class _OrderedMean(Aggregate):
    """Added up in the order of the values, so that equal sets have equal means, however they are read."""

    function = "AVG"
    template = "%(function)s(%(expressions)s ORDER BY %(expressions)s)"
    output_field = FloatField()


class _Median(Aggregate):
    function = "PERCENTILE_CONT"
    template = "%(function)s(0.5) WITHIN GROUP (ORDER BY %(expressions)s)"
    output_field = FloatField()


class _WithoutSeed(Func):
    template = "(%(expressions)s - 'seed')"
    output_field = JSONField()


@dataclass(frozen=True, slots=True)
class Together:
    """Mean or median of one metric over `count` runs; `interval` and `error` (of a mean) are None where they are too few, or no numbers."""

    value: float | None = None
    count: int = 0
    interval: Interval | None = None
    error: float | None = None


@dataclass(frozen=True, slots=True)
class SeedRow:
    """Runs that are alike but for the seed. `rank` is None where one of their scores is no finite number."""

    rank: int | None
    sharing: int
    version: AgentVersion
    parameters: dict[str, Any]  # without `seed`
    score: Together
    seeds: int  # different ones; fewer than runs where one was run twice
    first_at: datetime
    others: tuple[Together, ...] = ()
    telling: frozenset[str] = frozenset()  # parameters in which rows of its version on the page differ
    measured: tuple[uuid.UUID, ...] = ()  # artifacts that its scores were measured of
    makers: tuple[uuid.UUID, ...] = ()  # runs that reported its other scores of themselves

    @property
    def words(self) -> str:
        """The parameters as people read them, those first that tell it from its neighbours."""
        ordered = sorted(self.parameters.items(), key=lambda entry: (entry[0] not in self.telling, entry[0]))
        return ", ".join(f"{name} {value}" for name, value in ordered) or "no parameters"


@dataclass(frozen=True, slots=True)
class SeedBoard:
    """`rows` is the page asked for; leader and follower (the first of the next lower rank) are known on the first page alone."""

    over: str
    rows: list[SeedRow] = field(default_factory=list)
    total: int = 0
    start: int = 0
    leader: SeedRow | None = None
    follower: SeedRow | None = None

    @property
    def last(self) -> int:
        return self.start + len(self.rows)


def seed_board(
    scores: "QuerySet[Evaluation]", contract: Contract, leading: Metric, columns: tuple[str, ...], *, start: int, size: int
) -> SeedBoard:
    """`scores` are those of the metric `leading` under `contract`; `columns` are other metrics to show beside it."""
    over = contract.over_seeds
    alike = alike_but_for_seed(scores)
    found = _together(alike, over).annotate(
        seeds=Count("seed", distinct=True),
        first_at=Min("created_at"),
        all_values=ArrayAgg("value", order_by=["value"]),
        runs=ArrayAgg("run_id"),
        measured=ArrayAgg("subject_artifact_id", filter=Q(subject_artifact__isnull=False), default=[]),
        makers=ArrayAgg("run_id", filter=Q(subject_artifact__isnull=True), default=[]),
    )
    ordinal = is_ordinal(contract)
    by_value = F("together").asc() if leading.is_lower_better else F("together").desc()
    ranked = found.annotate(
        place=place(ordinal, [F("is_unranked").asc(), by_value], [F(name).asc() for name in EARLIER]),
        sharing=sharing(ordinal, ["is_unranked", "together"]),
        total=Window(Count(Value(1))),
    ).order_by("is_unranked", by_value, *EARLIER)
    page = list(ranked[start : start + size])
    total = page[0]["total"] if page else alike.values(*ALIKE).distinct().count() if start else 0
    versions = {
        version.pk: version for version in AgentVersion.objects.filter(pk__in={row["version"] for row in page}).select_related("agent")
    }
    others = _others(contract, columns, page)
    rows = _told_apart(
        [
            _row(row, over, versions[row["version"]], tuple(others.get((at, metric), Together()) for metric in columns))
            for at, row in enumerate(page)
        ]
    )
    leader = rows[0] if rows and not start and rows[0].rank is not None else None
    follower = next((row for row in rows if row.rank is not None and row.rank > 1), None) if leader else None
    return SeedBoard(over, rows, total, start, leader, follower)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a run's row stands: `rank` of `total` that have one; None where one of the row's scores is no finite number."""

    rank: int | None
    total: int
    value: float
    count: int  # runs of the row


def place_of(scores: "QuerySet[Evaluation]", contract: Contract, score: Evaluation) -> Place | None:
    """Of the row that `score` counts in; None where it counts in none, since it was withdrawn or is of another contract. Three queries."""
    alike = alike_but_for_seed(scores)
    maker = score.subject_artifact.run if score.run.kind == EVALUATE and score.subject_artifact is not None else score.run
    wanted = {"version": maker.agent_version_id, "alike": {key: value for key, value in maker.parameters.items() if key != "seed"}}
    row = next(iter(_together(alike.filter(**wanted), contract.over_seeds)), None)
    if row is None:
        return None
    ranked = _together(alike, contract.over_seeds).filter(is_unranked=0)
    if row["is_unranked"]:
        return Place(None, ranked.count(), math.nan, row["count"])
    better = "together__lt" if contract.direction == Contract.Direction.MINIMIZE else "together__gt"
    before = ranked.filter(**{better: row["together"]}).count()
    if is_ordinal(contract):
        equal = ranked.filter(together=row["together"]).annotate(first_at=Min("created_at")).order_by(*EARLIER)
        before += [(each["version"], each["alike"]) for each in equal].index((row["version"], row["alike"]))
    return Place(before + 1, ranked.count(), row["together"], row["count"])


def _together(alike: "QuerySet[Evaluation]", over: str) -> "QuerySet[Any, Any]":
    """Rows of the board, as dicts, with their mean or median and whether they have no rank."""
    found = alike.values(*ALIKE).annotate(
        together=_OrderedMean("value", filter=USABLE) if over == MEAN else _Median("value", filter=USABLE),
        count=Count("pk"),
        usable=Count("pk", filter=USABLE),
    )  # fmt: skip
    is_unranked = Case(When(usable=F("count"), then=Value(0)), default=Value(1), output_field=IntegerField())
    rows: QuerySet[Any, Any] = found.annotate(is_unranked=is_unranked).order_by()
    return rows


def alike_but_for_seed(scores: "QuerySet[Evaluation]") -> "QuerySet[Evaluation]":
    """Of each run the score that counts, with `version`, `alike` and `seed`; those of one version and equal `alike` stand in one row."""
    return _alike(_one_of_each_run(scores))


def _told_apart(rows: list[SeedRow]) -> list[SeedRow]:
    values: dict[uuid.UUID, dict[str, set[bytes]]] = {}
    for row in rows:
        of_version = values.setdefault(row.version.pk, {})
        for name in row.parameters:
            of_version.setdefault(name, set()).add(canonical(row.parameters[name]))
    return [replace(row, telling=frozenset(name for name, found in values[row.version.pk].items() if len(found) > 1)) for row in rows]


def _one_of_each_run(scores: "QuerySet[Evaluation]") -> "QuerySet[Evaluation]":
    """Of each run the score that counts: else whoever measures one seed again would weigh it more, and make the interval narrower."""
    newest = Window(RowNumber(), partition_by=[MAKER], order_by=[IS_OWN, F("created_at").desc(), F("pk").desc()])
    return scores.filter(pk__in=scores.order_by().annotate(nth=newest).filter(nth=1).values("pk")).order_by()


def every_score(scores: "QuerySet[Evaluation]") -> "QuerySet[Evaluation]":
    """All of them, those that count no more too, each with `maker` (the run that made what it measures), `is_own`, `version` and `alike`."""
    return _alike(scores).annotate(maker=MAKER, is_own=IS_OWN)


def _alike(scores: "QuerySet[Evaluation]") -> "QuerySet[Evaluation]":
    """Each score with the version and the parameters that made what it measures, and the seed."""
    return scores.annotate(
        version=Case(
            When(MEASURED, then=F("subject_artifact__run__agent_version")), default=F("run__agent_version"), output_field=UUIDField()
        ),
        alike=_WithoutSeed(
            Case(When(MEASURED, then=F("subject_artifact__run__parameters")), default=F("run__parameters"), output_field=JSONField())
        ),
        seed=Case(When(MEASURED, then=_seed("subject_artifact__run__")), default=_seed("run__"), output_field=JSONField()),
    )


def _seed(run: str) -> Any:
    """The seed that a run was asked for with, or its parameter of that name."""
    own = Func(F(f"{run}seed"), function="to_jsonb", output_field=JSONField())
    return Coalesce(own, F(f"{run}parameters__seed"), output_field=JSONField())


def _others(contract: Contract, metrics: tuple[str, ...], page: list[dict[str, Any]]) -> dict[tuple[int, str], Together]:
    """By place on the page: mean or median of other metrics of the runs that stand there."""
    places = {run: place for place, row in enumerate(page) for run in row["runs"]}
    if not metrics or not places:
        return {}
    values: dict[tuple[int, str], list[float]] = {}
    reported = standing().filter(benchmark=contract.benchmark_id, contract=contract, metric__in=metrics, run__in=places)
    for run, metric, value in reported.order_by("value", "pk").values_list("run_id", "metric", "value"):
        values.setdefault((places[run], metric), []).append(value)
    middle = fmean if contract.over_seeds == MEAN else median
    return {key: _summed(contract.over_seeds, middle(found) if can_be_summed(found) else math.nan, found) for key, found in values.items()}


def _summed(over: str, middle: float, values: list[float]) -> Together:
    return Together(middle, len(values), interval(over, values), standard_error(values) if over == MEAN else None)


def _row(row: dict[str, Any], over: str, version: AgentVersion, others: tuple[Together, ...]) -> SeedRow:
    is_ranked = not row["is_unranked"]
    return SeedRow(
        rank=row["place"] if is_ranked else None,
        sharing=row["sharing"] if is_ranked else 1,
        version=version,
        parameters=row["alike"],
        score=_summed(over, row["together"] if is_ranked else math.nan, row["all_values"]),
        seeds=row["seeds"],
        first_at=row["first_at"],
        others=others,
        measured=tuple(row["measured"]),
        makers=tuple(row["makers"]),
    )
