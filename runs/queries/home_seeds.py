"""Who leads where a contract ranks over seeds: the row of runs that are alike but for the seed, now, at an instant, and hour after hour."""

import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from statistics import fmean, median

from django.db.models import F, QuerySet, Window
from django.db.models.functions import DenseRank, TruncHour

from runs.models import Evaluation
from runs.queries.seed_board import ALIKE, SeedRow, every_score, leaders
from runs.queries.standing import standing
from runs.seed_intervals import MEAN, Interval, can_be_summed
from workspaces.canonical import canonical
from workspaces.models import Contract

TREND_SCORES = 20_000  # beyond so many, home draws no trend of rows: each of them would have to be read


@dataclass(frozen=True, slots=True)
class SeedLead:
    """The first row of the board, with the names that a single score has: `value` is its mean or median, `pk` tells the row from others."""

    over: str
    row: SeedRow

    @property
    def pk(self) -> tuple[uuid.UUID, bytes]:
        return self.row.version.pk, canonical(self.row.parameters)

    @property
    def value(self) -> float:
        return self.row.score.value or 0.0  # a row that leads has one

    @property
    def standard_error(self) -> float | None:
        return self.row.score.error

    @property
    def interval(self) -> Interval | None:
        return self.row.score.interval

    @property
    def count(self) -> int:
        """Runs that it stands for."""
        return self.row.score.count


def seed_lead(contract: Contract) -> SeedLead | None:
    """Who leads; None where no row has a rank. Three queries."""
    return lead_of(_scores(contract), contract)


def seed_leads(contract: Contract, until: datetime) -> tuple[SeedLead | None, SeedLead | None]:
    """Who leads, and who led by the scores that were there at `until`. Five queries, of which one reads them all."""
    now, before = leaders(_scores(contract), contract, until=[until])
    return _lead(contract, now), _lead(contract, before)


def lead_of(scores: "QuerySet[Evaluation]", contract: Contract) -> SeedLead | None:
    """Who would lead, were these all the scores of the contract's first metric. Three queries."""
    return _lead(contract, leaders(scores, contract)[0])


def _lead(contract: Contract, row: SeedRow | None) -> SeedLead | None:
    return None if row is None else SeedLead(contract.over_seeds, row)


def _scores(contract: Contract) -> "QuerySet[Evaluation]":
    return standing().filter(benchmark=contract.benchmark_id, contract=contract.pk, metric=contract.metric)


def seed_trend(contract: Contract, points: int) -> list[float]:
    """The leading value as it stood hour after hour, the last `points` of them; it falls where a row's next seed is worse. Hours in which no row
    had a rank are left out; [] beyond TREND_SCORES scores."""
    scores = _scores(contract).order_by()
    if scores[: TREND_SCORES + 1].count() > TREND_SCORES:
        return []
    timed = every_score(scores).annotate(
        row=Window(DenseRank(), order_by=[F(name) for name in ALIKE]), hour=TruncHour("created_at", tzinfo=UTC)
    )  # fmt: skip
    told = timed.order_by("created_at", "pk").values_list("hour", "row", "maker", "is_own", "value")
    return _hour_by_hour(contract, list(told))[-points:]


def _hour_by_hour(contract: Contract, scores: list[tuple[datetime, int, uuid.UUID, int, float]]) -> list[float]:
    rows: dict[int, dict[uuid.UUID, tuple[int, float]]] = {}  # of each run the score that counts, as far as it was known
    leading: dict[int, float] = {}
    touched: set[int] = set()
    best = min if contract.direction == Contract.Direction.MINIMIZE else max
    trend: list[float] = []
    for place, (hour, row, maker, is_own, value) in enumerate(scores):
        of_row = rows.setdefault(row, {})
        if maker not in of_row or is_own <= of_row[maker][0]:  # what was measured of a run goes before what it says of itself
            of_row[maker] = (is_own, value)
            touched.add(row)
        if place + 1 < len(scores) and scores[place + 1][0] == hour:
            continue
        for changed in touched:
            values = [value for _, value in rows[changed].values()]
            leading.pop(changed, None)
            if can_be_summed(values):
                leading[changed] = (fmean if contract.over_seeds == MEAN else median)(values)
        touched.clear()
        if leading:
            trend.append(best(leading.values()))
    return trend
