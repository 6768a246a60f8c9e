"""The scoreboard of a contract that ranks over seeds: runs that are alike but for the seed are one row, by the mean or the median of their scores.

Alike are runs of the same version of an agent with the same parameters but for `seed`; an evaluation counts for the run that made what it measured.
Each run counts once, however often it was measured: by the newest evaluation of what it made, else by what it reported of itself, as in a promotion.
The rules are those of the other board: by the whole value; equal values by the contract's tie rule, the row whose first score is the earliest first.
A row one of whose scores is no finite number, or beyond LARGEST, has no rank: a seed that failed to give a number is not left out.
"""

import math
import uuid
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from statistics import fmean, median
from typing import Any

from django.contrib.postgres.aggregates import ArrayAgg
from django.db.models import (
    Case,
    Count,
    F,
    Func,
    IntegerField,
    JSONField,
    Min,
    Q,
    QuerySet,
    UUIDField,
    Value,
    When,
)
from django.db.models.functions import Coalesce

from runs.admission import EVALUATE
from runs.models import Evaluation
from runs.queries import seed_rows
from runs.queries.seed_rows import Placed
from runs.queries.standing import standing
from runs.seed_intervals import MEAN, Interval, can_be_summed, interval, standard_error
from workspaces.canonical import canonical
from workspaces.contract_metrics import Metric
from workspaces.kept_query import Keys
from workspaces.models import AgentVersion, Contract

MEASURED = Q(run__kind=EVALUATE, subject_artifact__isnull=False)
ALIKE = ("version", "alike")
IS_OWN = Case(When(MEASURED, then=Value(0)), default=Value(1), output_field=IntegerField())
MAKER = Case(When(MEASURED, then=F("subject_artifact__run")), default=F("run"), output_field=UUIDField())


class _WithoutSeed(Func):
    template = "(%(expressions)s - 'seed')"
    output_field = JSONField()


def alike_words(parameters: Mapping[str, Any], telling: Container[str] = ()) -> str:
    """Parameters as people read them, those of `telling` first."""
    ordered = sorted(parameters.items(), key=lambda entry: (entry[0] not in telling, entry[0]))
    return ", ".join(f"{name} {value}" for name, value in ordered) or "no parameters"


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
    scores: tuple[uuid.UUID, ...] = ()  # that count in it

    @property
    def words(self) -> str:
        """The parameters as people read them, those first that tell it from its neighbours."""
        return alike_words(self.parameters, self.telling)


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

    @property
    def lead_error(self) -> float | None:
        """Standard error of the leader's lead, the two rows taken as independent; None where one of them has none."""
        errors = [row.score.error if row is not None else None for row in (self.leader, self.follower)]
        return math.hypot(*(error for error in errors if error is not None)) if None not in errors else None


def seed_board(
    scores: "QuerySet[Evaluation]", contract: Contract, leading: Metric, columns: tuple[str, ...], *, start: int, size: int
) -> SeedBoard:
    """`scores` are those of the metric `leading` under `contract`; `columns` are other metrics to show beside it."""
    found = seed_rows.page(scores, contract, is_lower_better=leading.is_lower_better, start=start, size=size)
    rows = _shown(found, contract, columns)
    total = found[0].total if found else _total(scores, contract) if start else 0
    leader = rows[0] if rows and not start and rows[0].rank is not None else None
    follower = next((row for row in rows if row.rank is not None and row.rank > 1), None) if leader else None
    return SeedBoard(contract.over_seeds, rows, total, start, leader, follower)


def leaders(scores: "QuerySet[Evaluation]", contract: Contract, *, until: Sequence[datetime] = ()) -> list[SeedRow | None]:
    """The first row by the contract's first metric, were `scores` all there are: now, and at each of `until`; None where no row has a rank."""
    found = seed_rows.first(scores, contract, until=until)
    ranked = [row if row is not None and row.is_ranked else None for row in found]
    return [_shown([row], contract, ())[0] if row is not None else None for row in ranked]


def _total(scores: "QuerySet[Evaluation]", contract: Contract) -> int:
    return next((row.total for row in seed_rows.page(scores, contract, is_lower_better=False, start=0, size=1)), 0)


def _shown(found: Sequence[Placed], contract: Contract, columns: tuple[str, ...]) -> list[SeedRow]:
    """The rows with what stands in them."""
    scores = _alike(Evaluation.objects.filter(pk=Keys(values=[key for row in found for key in row.scores])))
    parts = scores.values(*ALIKE).annotate(
        seeds=Count("seed", distinct=True),
        first_at=Min("created_at"),
        keys=ArrayAgg("pk"),
        all_values=ArrayAgg("value", order_by=["value"]),
        runs=ArrayAgg("run_id", order_by=["pk"]),
        subjects=ArrayAgg("subject_artifact_id", order_by=["pk"]),
        measured=ArrayAgg("subject_artifact_id", filter=Q(subject_artifact__isnull=False), default=[]),
        makers=ArrayAgg("run_id", filter=Q(subject_artifact__isnull=True), default=[]),
    )
    by_score = {key: part for part in (parts.order_by() if found else ()) for key in part["keys"]}
    page = [by_score[row.scores[0]] for row in found]
    versions = {
        version.pk: version for version in AgentVersion.objects.filter(pk__in={row["version"] for row in page}).select_related("agent")
    }
    others = _others(contract, columns, page)
    return _told_apart(
        [
            _row(
                row, part, contract.over_seeds, versions[part["version"]], tuple(others.get((at, metric), Together()) for metric in columns)
            )
            for at, (row, part) in enumerate(zip(found, page, strict=True))
        ]
    )


@dataclass(frozen=True, slots=True)
class Place:
    """Where a run's row stands: `rank` of `total` that have one; None where one of the row's scores is no finite number."""

    rank: int | None
    total: int
    value: float
    count: int  # runs of the row


def place_of(scores: "QuerySet[Evaluation]", contract: Contract, score: Evaluation) -> Place | None:
    """Of the row that `score` counts in; None where it counts in none, since it was withdrawn or is of another contract. One query."""
    maker = score.subject_artifact.run if score.run.kind == EVALUATE and score.subject_artifact is not None else score.run
    alike = {key: value for key, value in maker.parameters.items() if key != "seed"}
    row = seed_rows.one(scores, contract, maker.agent_version_id, alike)
    if row is None:
        return None
    if not row.is_ranked or row.middle is None:
        return Place(None, row.ranked, math.nan, row.count)
    return Place(row.place, row.ranked, row.middle, row.count)


def _told_apart(rows: list[SeedRow]) -> list[SeedRow]:
    values: dict[uuid.UUID, dict[str, set[bytes]]] = {}
    for row in rows:
        of_version = values.setdefault(row.version.pk, {})
        for name in row.parameters:
            of_version.setdefault(name, set()).add(canonical(row.parameters[name]))
    return [replace(row, telling=frozenset(name for name, found in values[row.version.pk].items() if len(found) > 1)) for row in rows]


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
    """By place on the page: mean or median of other metrics of the runs that stand there, of the same artifact or of none in particular."""
    places = {run: (at, subject) for at, row in enumerate(page) for run, subject in zip(row["runs"], row["subjects"], strict=True)}
    if not metrics or not places:
        return {}
    values: dict[tuple[int, str], list[float]] = {}
    reported = standing().filter(benchmark=contract.benchmark_id, contract=contract, metric__in=metrics, run__in=places)
    for run, metric, subject, value in reported.order_by("value", "pk").values_list("run_id", "metric", "subject_artifact_id", "value"):
        at, measured = places[run]
        if subject in (None, measured):
            values.setdefault((at, metric), []).append(value)
    middle = fmean if contract.over_seeds == MEAN else median
    return {key: _summed(contract.over_seeds, middle(found) if can_be_summed(found) else math.nan, found) for key, found in values.items()}


def _summed(over: str, middle: float, values: list[float]) -> Together:
    return Together(middle, len(values), interval(over, values), standard_error(values) if over == MEAN else None)


def _row(row: Placed, part: dict[str, Any], over: str, version: AgentVersion, others: tuple[Together, ...]) -> SeedRow:
    middle = row.middle if row.is_ranked and row.middle is not None else math.nan
    return SeedRow(
        rank=row.place if row.is_ranked else None,
        sharing=row.sharing if row.is_ranked else 1,
        version=version,
        parameters=part["alike"],
        score=_summed(over, middle, part["all_values"]),
        seeds=part["seeds"],
        first_at=part["first_at"],
        others=others,
        measured=tuple(part["measured"]),
        makers=tuple(part["makers"]),
        scores=tuple(part["keys"]),
    )
