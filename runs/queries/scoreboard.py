"""Who leads a benchmark: scores under the contract that holds now, ranked; scores under older versions beside them, marked and unranked.

The order (table E of what a ranking must hold): by the whole value, never by what is displayed of it, in the contract's direction; equal values
share a rank, or the earlier one has the better, as the contract's tie rule says, and either way the earliest of them stands first; what is no finite
number comes last and has no rank, in either direction.
"""

import math
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from django.db.models import F, QuerySet

from runs.admission import EVALUATE
from runs.charts import NORMAL_95
from runs.models import Artifact, Evaluation, Run
from runs.queries.mean_rank import Columns, Ranks, page_by_ranks, ranks_beside
from runs.queries.ranking import FINITE, NO_NUMBERS, PAGE, best_first, best_keys, page_of, rows_of
from runs.queries.reported import reported
from runs.queries.samples import doubts_of
from runs.queries.score_rows import with_related
from runs.queries.seed_board import SeedBoard, seed_board
from runs.queries.standing import counted, counts_among, how_many, standing
from runs.queries.ties import is_ordinal
from runs.queries.unscored import Unscored, unscored
from runs.seed_intervals import Interval
from workspaces import kept_query
from workspaces.contract_metrics import Metric
from workspaces.instant import one_instant
from workspaces.models import Benchmark, Contract, Pool
from workspaces.queries.registry import current_contract, find_contract

FARTHEST = 1_000_000  # score from which on no page begins
LOOKED_AT = 200  # scores from the first of which it is known how their runs were isolated: it stands in each run's frozen facts
OLDER = 20  # scores under older versions, shown beside the board that holds now
MOST_COLUMNS = 4  # of other metrics beside the score
MOST_OFFERED = 24
BY_SCORE, BY_MEAN, BY_MEDIAN = ORDERS = ("score", "mean", "median")


@dataclass(frozen=True, slots=True)
class BoardView:
    """What of the board is asked for. `metrics` are columns beside the score; those that no run has reported are left out."""

    is_best: bool = False  # the best score of each agent alone
    metrics: tuple[str, ...] = ()
    lower: tuple[
        str, ...
    ] = ()  # those of `metrics` whose smaller values are better; nothing else says so of a metric that no contract ranks by
    order: str = BY_SCORE  # BY_MEAN and BY_MEDIAN want columns, and stand by the ranks in them
    start: int = 0  # how many scores stand before the first of this page
    is_single: bool = False  # each score for itself, although the contract ranks over seeds
    by: str = ""  # the metric of the contract that ranks; empty, or no metric of it: the contract's first
    version: int = 0  # of the contract; 0, or none of it: the one that holds now


@dataclass(frozen=True, slots=True)
class Measured:
    """A value of another metric; `value` is None where the run reported none."""

    value: float | None = None
    standard_error: float | None = None


@dataclass(frozen=True, slots=True)
class Score:
    """`rank` is None where the value is no finite number, or was measured under an older contract; `sharing` are those that share it."""

    rank: int | None
    evaluation: Evaluation
    is_current: bool
    sharing: int = 1
    others: tuple[Measured, ...] = ()
    ranks: Ranks | None = None  # over the score and the columns beside it; None without columns, and without a rank

    @property
    def isolation(self) -> str:
        """Of the pool, from the holdout among others: what the run was admitted on."""
        return str(getattr(self.evaluation, "isolation"))

    @property
    def is_isolated(self) -> bool:
        return self.isolation != Pool.Isolation.NONE

    @property
    def interval(self) -> Interval | None:
        """That holds the value with 95 % if its error is normal; None where no error is known."""
        value, error = self.evaluation.value, self.evaluation.standard_error
        if error is None or not math.isfinite(error) or not math.isfinite(value):
            return None
        return Interval(value - NORMAL_95 * error, value + NORMAL_95 * error)

    @property
    def doubts(self) -> list[str]:
        """What the score says and its file of samples does not."""
        return doubts_of(self.evaluation)

    @property
    def made_by(self) -> Run:
        """The run whose work was measured: the one that reported it, or the maker of what an evaluation measured."""
        run: Run = self.evaluation.run
        subject: Artifact | None = self.evaluation.subject_artifact
        return subject.run if subject is not None and run.kind == EVALUATE else run


@dataclass(frozen=True, slots=True)
class Scoreboard:
    """`scores` is the page asked for; leader, follower and counts are those of the whole board as it is looked at."""

    contract: Contract | None
    view: BoardView = field(default_factory=BoardView)
    leading: Metric = field(default_factory=lambda: Metric(""))  # the metric that ranks here
    columns: tuple[str, ...] = ()  # of metrics beside it: those of the view, else those of the contract
    over_seeds: SeedBoard | None = None  # instead of `scores`, where the contract ranks over seeds
    scores: list[Score] = field(default_factory=list)
    older: list[Score] = field(default_factory=list)
    total: int = 0  # scores under the contract that holds now
    ranked: int = 0  # of them that have a rank
    bare: int = 0  # of `looked_at` those that ran without isolation
    leader: Score | None = None
    follower: Score | None = None  # the first of the next lower rank
    withdrawn: int = 0  # scores under it that rest on something withdrawn, and stand nowhere
    offered: list[str] = field(default_factory=list)  # other metrics that were reported under this contract
    unscored: Unscored = field(default_factory=Unscored)

    @property
    def is_past(self) -> bool:
        """Of a version of the contract that holds no more."""
        return self.view.version > 0

    @property
    def looked_at(self) -> int:
        """How many of the ranked, from the first, were asked how their runs were isolated."""
        return min(self.ranked, LOOKED_AT)

    @property
    def is_mixed(self) -> bool:
        """Were some of the runs isolated and others not?"""
        return 0 < self.bare < self.looked_at

    @property
    def tied(self) -> int:
        """How many share the first rank."""
        return self.leader.sharing if self.leader else 0

    @property
    def last(self) -> int:
        return self.view.start + len(self.scores)

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
        if not self.lead:  # led by a tie rule alone
            return 0.0
        return self.lead / self.lead_error if self.lead_error > 0 else math.inf


@dataclass(frozen=True, slots=True)
class Ranking:
    """A version of a contract, and the metric of it that ranks; `is_past`: it holds no more."""

    contract: Contract
    leading: Metric
    is_past: bool


def ranking_of(benchmark: Benchmark, *, by: str, version: int) -> Ranking | None:
    """What `by` and `version` of a view mean; None where there is no contract. Raises NotFound."""
    newest = current_contract(benchmark.pk)
    if newest is None:
        return None
    contract = find_contract(benchmark, version) if 0 < version < newest.version else newest
    leading = next((metric for metric in contract.all_metrics if metric.metric == by), contract.primary)
    return Ranking(contract, leading, is_past=contract != newest)


@one_instant()
def scoreboard(benchmark: Benchmark, view: BoardView | None = None, *, size: int | None = None) -> Scoreboard:
    """The board as `view` asks for it, `size` scores of it (PAGE where nothing else is said): counts, leader and rows of one instant, also while
    scores come in or a withdrawal takes some away."""
    size = PAGE if size is None else size
    view = view or BoardView()
    asked = ranking_of(benchmark, by=view.by, version=view.version)
    if asked is None:
        return Scoreboard(contract=None, view=view)
    contract, leading, is_past = asked.contract, asked.leading, asked.is_past
    view = replace(view, version=contract.version if is_past else 0)
    offered = _offered(contract, leading, view.metrics)
    view = _settled(view, contract, leading, offered)
    columns = view.metrics or tuple(metric.metric for metric in contract.all_metrics if metric != leading)
    of = _of(contract, leading)
    if view.is_best:
        of["pk"] = best_keys(leading.direction, **of)
    rows = rows_of(**of)
    known = Scoreboard(
        contract=contract, view=view, leading=leading, columns=columns, offered=offered,
        unscored=unscored(contract, leading.metric), **_counts(leading.direction, contract, leading, of),
    )  # fmt: skip
    if contract.over_seeds and not view.is_best and not view.is_single:
        together = seed_board(rows, contract, leading, columns, start=view.start, size=size)
        return replace(known, over_seeds=together, older=_older_scores(contract, leading, is_past=is_past))
    ordinal = is_ordinal(contract)
    places: dict[str, Any] = {"ordinal": ordinal, "ranked": known.ranked, "total": known.total, **of}
    page, ranks = _page(leading, Columns(contract, view.metrics, view.lower), view, size, **places)
    others = _others(contract, columns, page)
    scores = [_score(row, others.get(row.pk, ()), ranks.get(row.pk)) for row in page]
    if not view.start and view.order == BY_SCORE:
        top = scores[0] if scores else None
    else:
        top = next((_score(row) for row in with_related(page_of(leading.direction, size=1, **places))), None)
    leader = top if top is not None and top.rank is not None else None
    return replace(
        known,
        scores=scores,
        older=_older_scores(contract, leading, is_past=is_past),
        leader=leader,
        follower=_follower(leader, scores, rows, leading, ordinal=ordinal),
    )


def _settled(view: BoardView, contract: Contract, leading: Metric, offered: Sequence[str]) -> BoardView:
    """The view with what can be shown of it: columns that were reported, and each with the direction that the contract gives it."""
    declared = {metric.metric: metric.is_lower_better for metric in contract.all_metrics}
    metrics = tuple(name for name in offered if name in view.metrics)[:MOST_COLUMNS]
    return replace(
        view,
        by=leading.metric if leading.metric != contract.metric else "",
        metrics=metrics,
        lower=tuple(name for name in metrics if declared.get(name, name in view.lower)),
        order=view.order if metrics and view.order in ORDERS else BY_SCORE,
        start=max(0, view.start),
    )


def _of(contract: Contract, leading: Contract | Metric) -> dict[str, Any]:
    return {"benchmark": contract.benchmark_id, "contract": contract.pk, "metric": leading.metric}


def _counts(direction: str, contract: Contract, leading: Metric, of: dict[str, Any]) -> dict[str, Any]:
    """Of the rows `of`, and how many scores of the whole board are withdrawn."""
    board = how_many(**_of(contract, leading))
    beside = [kept_query.Question(_without_rank, (), of), kept_query.Question(_isolations, (direction, LOOKED_AT), of)]
    *answers, unranked, isolations = kept_query.ask_together([*board, *beside])
    standing_now, withdrawn = counts_among(answers)
    total = len(of["pk"]) if "pk" in of else standing_now
    bare = sum(isolation == Pool.Isolation.NONE for (isolation,) in isolations)
    return {"total": total, "ranked": total - sum(count for _, count in unranked), "withdrawn": withdrawn, "bare": bare}


def _without_rank(**of: Any) -> "QuerySet[Any, Any]":
    return counted(rows_of(**of).filter(value__in=NO_NUMBERS))


def _isolations(direction: str, most: int, **of: Any) -> "QuerySet[Any, Any]":
    first = rows_of(**of).filter(FINITE).order_by(*best_first(direction))
    return first.values_list("run__frozen__pool__isolation")[:most]


def _older_scores(contract: Contract, leading: Metric, *, is_past: bool) -> list[Score]:
    if is_past:
        return []
    named = {"metric": leading.metric} if leading.metric != contract.metric else {}
    found = kept_query.ask(_under_others, OLDER, benchmark=contract.benchmark_id, contract=contract.pk, **named)
    return [Score(rank=None, evaluation=row, is_current=False) for row in with_related(found)]


def _under_others(limit: int, benchmark: Any, contract: Any, metric: Any = None) -> "QuerySet[Evaluation]":
    """Scores of one metric, else of the first that each of the older contracts ranked by."""
    older = standing().filter(benchmark=benchmark, metric=F("contract__metric") if metric is None else metric).exclude(contract=contract)
    return older.order_by("-created_at", "-pk")[:limit]


def scores_under(contract: Contract, leading: Contract | Metric | None = None) -> "QuerySet[Evaluation]":
    """Scores of the contract's first metric, or another, measured under this version of it, that rest on nothing withdrawn."""
    return rows_of(**_of(contract, leading or contract))


def _page(
    leading: Metric, beside: Columns, view: BoardView, size: int, *, ordinal: bool, ranked: int, total: int, **of: Any
) -> tuple[list[Evaluation], dict[uuid.UUID, Ranks]]:
    """Rows in the order asked for, with the ranks by each column of those that have one."""
    if view.order != BY_SCORE:
        by_median = view.order == BY_MEDIAN
        page, ranks = page_by_ranks(leading, beside, by_median=by_median, ordinal=ordinal, ranked=ranked, start=view.start, size=size, **of)
        return with_related(page), ranks
    page = page_of(leading.direction, ordinal=ordinal, ranked=ranked, total=total, start=view.start, size=size, **of)
    return with_related(page), ranks_beside(page, beside, **of) if beside.metrics else {}


def _score(row: Evaluation, others: tuple[Measured, ...] = (), ranks: Ranks | None = None) -> Score:
    is_ranked = not getattr(row, "is_unranked")
    return Score(
        rank=getattr(row, "place") if is_ranked else None,
        evaluation=row,
        is_current=True,
        sharing=getattr(row, "sharing") if is_ranked else 1,
        others=others,
        ranks=ranks,
    )


def _follower(
    leader: Score | None, shown: Sequence[Score], rows: "QuerySet[Evaluation]", leading: Metric, *, ordinal: bool
) -> Score | None:
    """The first score behind the leader's; asked for where it does not stand on the page."""
    if leader is None:
        return None
    found = next((score for score in shown if score.rank == leader.sharing + 1), None)
    if found is not None:
        return found
    those: dict[str, Any] = {"pk": leader.evaluation.pk} if ordinal else {"value": leader.evaluation.value}
    behind = with_related(rows.filter(FINITE).exclude(**those).order_by(*best_first(leading.direction))[:1])
    return next((Score(leader.sharing + 1, row, True) for row in behind), None)


def _offered(contract: Contract, leading: Metric, wanted: Sequence[str]) -> list[str]:
    """Other metrics that runs reported: the first of them, and those that the address names."""
    of = {"benchmark": contract.benchmark_id, "contract": contract.pk}
    found = [name for name in reported(**of, most=MOST_OFFERED + 1) if name != leading.metric][:MOST_OFFERED]
    missing = [name for name in wanted if name not in found and name != leading.metric][:MOST_COLUMNS]
    more = standing().filter(**of, metric__in=missing).values_list("metric", flat=True).distinct() if missing else ()
    return [*found, *sorted(more)]


def _others(contract: Contract, metrics: Sequence[str], rows: Sequence[Evaluation]) -> dict[uuid.UUID, tuple[Measured, ...]]:
    """What the run of each of `rows` reported of other metrics, in their order: of the same artifact, or of none in particular."""
    if not metrics:
        return {}
    found: dict[tuple[uuid.UUID, str], tuple[uuid.UUID | None, Measured]] = {
        (run_id, metric): (subject_id, Measured(value, error))
        for run_id, metric, subject_id, value, error in Evaluation.objects.filter(
            benchmark=contract.benchmark_id, contract=contract, metric__in=metrics, run__in={row.run_id for row in rows}
        ).values_list("run_id", "metric", "subject_artifact_id", "value", "standard_error")
    }

    def of(row: Evaluation, metric: str) -> Measured:
        subject_id, measured = found.get((row.run_id, metric), (None, Measured()))
        return measured if subject_id in (None, row.subject_artifact_id) else Measured()

    return {row.pk: tuple(of(row, metric) for metric in metrics) for row in rows}
