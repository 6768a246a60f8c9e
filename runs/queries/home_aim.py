"""What the group tries to improve, and how far it is."""

from dataclasses import dataclass, field
from datetime import UTC
from typing import Any

from django.db.models import Max, Min, QuerySet
from django.db.models.functions import TruncHour

from runs.models import Evaluation
from runs.queries.home_scores import Board
from runs.queries.home_seeds import SeedLead, seed_trend
from runs.queries.ranking import FINITE
from runs.queries.standing import standing
from workspaces import kept_query
from workspaces.models import Contract, Objective
from workspaces.units import number

TREND_POINTS = 120


@dataclass(frozen=True, slots=True)
class Aim:
    """The objective with its best score under the current contract."""

    objective: Objective
    board: Board | None = None
    trend: list[float] = field(default_factory=list)

    @property
    def contract(self) -> Contract | None:
        return self.board.contract if self.board else None

    @property
    def best(self) -> Evaluation | SeedLead | None:
        return self.board.leader if self.board else None

    @property
    def trend_label(self) -> str:
        return f"Leading {self.contract.over_seeds} over time" if self.contract and self.contract.over_seeds else "Best score over time"

    @property
    def is_reached(self) -> bool:
        if self.best is None or self.contract is None or self.objective.target is None:
            return False
        higher = self.contract.direction == Contract.Direction.MAXIMIZE
        return self.best.value >= self.objective.target if higher else self.best.value <= self.objective.target

    @property
    def missing(self) -> str:
        """How far the best is from the target, to two significant digits, whatever its error; "" where it is reached or nothing is measured."""
        if self.best is None or self.contract is None or self.objective.target is None or self.is_reached:
            return ""
        gap = abs(self.objective.target - self.best.value)
        value = number(gap, gap).partition(" ")[0]
        return f"{value} {self.contract.unit}".rstrip()


def aim(objective: Objective | None, boards: list[Board]) -> Aim | None:
    """The objective with its benchmark's board, where that is among `boards`."""
    if objective is None:
        return None
    board = next((board for board in boards if board.contract.benchmark_id == objective.benchmark_id), None)
    return Aim(objective, board, _trend(board) if board and board.leader else [])


def _trend(board: Board) -> list[float]:
    return seed_trend(board.contract, TREND_POINTS) if board.contract.over_seeds else trend_of(board.contract)


def trend_of(contract: Contract) -> list[float]:
    """The best score as it stood hour after hour."""
    higher = contract.direction == Contract.Direction.MAXIMIZE
    found: list[float] = []
    for (best,) in kept_query.ask(_best_by_hour, higher, benchmark=contract.benchmark_id, contract=contract.pk, metric=contract.metric):
        found.append((max if higher else min)(best, found[-1]) if found else best)
    return found[-TREND_POINTS:]


def _best_by_hour(higher: bool, **of: Any) -> "QuerySet[Any, Any]":
    hours = standing().filter(FINITE, **of).order_by().annotate(hour=TruncHour("created_at", tzinfo=UTC)).values("hour")
    return hours.annotate(best=(Max if higher else Min)("value")).order_by("hour").values_list("best")
