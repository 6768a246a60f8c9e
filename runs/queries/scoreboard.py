"""Who leads a benchmark: scores under the contract that holds now, ranked; scores under older versions beside them, marked and unranked."""

import math
from dataclasses import dataclass

from django.db.models import Case, F, IntegerField, OrderBy, Q, QuerySet, Value, When, Window
from django.db.models.functions import Rank

from runs.models import Evaluation
from workspaces.models import Benchmark, Contract, Pool
from workspaces.queries.registry import current_contract

FINITE = Q(value__gt=-math.inf, value__lt=math.inf)  # PostgreSQL sorts NaN above infinity


@dataclass(frozen=True, slots=True)
class Score:
    """`rank` is None where the value is no finite number, or was measured under an older contract."""

    rank: int | None
    evaluation: Evaluation
    is_current: bool
    is_isolated: bool  # the pool kept the run away from the holdout


@dataclass(frozen=True, slots=True)
class Scoreboard:
    contract: Contract | None
    scores: list[Score]
    older: list[Score]
    total: int  # scores under the contract that holds now

    @property
    def leader(self) -> Score | None:
        return self.scores[0] if self.scores and self.scores[0].rank is not None else None

    @property
    def follower(self) -> Score | None:
        """The first of the next lower rank."""
        return next((score for score in self.scores if score.rank is not None and score.rank > 1), None)

    @property
    def is_mixed(self) -> bool:
        """Were some of the runs isolated and others not?"""
        return len({score.is_isolated for score in self.scores}) > 1

    @property
    def tied(self) -> int:
        """How many share the first rank."""
        return sum(1 for score in self.scores if score.rank == 1)

    @property
    def lead(self) -> float | None:
        """By how much the leader is ahead of the next lower rank, as a positive number; None where nobody follows."""
        if self.leader is None or self.follower is None:
            return None
        return abs(self.leader.evaluation.value - self.follower.evaluation.value)

    @property
    def lead_error(self) -> float | None:
        """Standard error of the lead, the two scores taken as independent; None where one of them reported none."""
        if self.leader is None or self.follower is None:
            return None
        first, second = self.leader.evaluation.standard_error, self.follower.evaluation.standard_error
        if first is None or second is None or not math.isfinite(first) or not math.isfinite(second):
            return None
        return math.hypot(first, second)

    @property
    def lead_in_errors(self) -> float | None:
        """The lead in its own standard errors; None where the error is not known. Under 2 it may be chance."""
        if self.lead is None or self.lead_error is None:
            return None
        return self.lead / self.lead_error if self.lead_error > 0 else math.inf


def scoreboard(benchmark: Benchmark, *, limit: int = 50, older_limit: int = 20) -> Scoreboard:
    """The first `limit` scores. Equal values share a rank, the earliest of them stands first; NaN and infinities come last, unranked."""
    contract = current_contract(benchmark.pk)
    if contract is None:
        return Scoreboard(contract=None, scores=[], older=[], total=0)
    current = scores_under(contract)
    older = _related(benchmark.evaluations.exclude(contract=contract)).order_by("-created_at", "-pk")[:older_limit]
    return Scoreboard(
        contract=contract,
        scores=[
            Score(None if getattr(row, "is_unranked") else getattr(row, "place"), row, True, row.run.isolation != Pool.Isolation.NONE)
            for row in ranked(_related(current), contract)[:limit]
        ],
        older=[Score(None, row, False, row.run.isolation != Pool.Isolation.NONE) for row in older],
        total=current.count(),
    )


def scores_under(contract: Contract) -> "QuerySet[Evaluation]":
    """Scores of the contract's own metric, measured under this version of it."""
    return Evaluation.objects.filter(benchmark=contract.benchmark_id, contract=contract, metric=contract.metric)


def best_first(contract: Contract) -> tuple[OrderBy, str, str]:
    """The order in which scores lead: by value, of equal ones the earliest."""
    value = F("value")
    return (value.desc() if contract.direction == Contract.Direction.MAXIMIZE else value.asc(), "created_at", "pk")


def ranked(rows: "QuerySet[Evaluation]", contract: Contract) -> "QuerySet[Evaluation]":
    """The rows in their order, each with `is_unranked` (0 or 1) and `place`, which ties share."""
    by_value, *ties = best_first(contract)
    rows = rows.annotate(is_unranked=Case(When(FINITE, then=Value(0)), default=Value(1), output_field=IntegerField()))
    return rows.annotate(place=Window(Rank(), order_by=["is_unranked", by_value])).order_by("is_unranked", by_value, *ties)


def _related(rows: "QuerySet[Evaluation]") -> "QuerySet[Evaluation]":
    return rows.select_related("run__agent", "run__agent_version", "run__pool", "contract")
