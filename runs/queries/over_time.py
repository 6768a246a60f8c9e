"""How the best score under a contract came about, by the metric that ranks on the board that is looked at: each score that was better than all before
it, as far as it stands now."""

from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import F, Max, Min, Q, QuerySet, RowRange, Window

from runs.models import Evaluation
from runs.queries.ranking import FINITE
from runs.queries.score_rows import with_related
from runs.queries.scoreboard import Ranking, Score
from runs.queries.standing import standing
from workspaces.queries.paging import Page, newest_first

SHOWN = 200


@dataclass(frozen=True, slots=True)
class Step:
    """`by`: how much better than the best before it, as a positive number; None for the first score."""

    score: Score
    by: float | None


@dataclass(frozen=True, slots=True)
class Course:
    """`steps`: the newest SHOWN, newest first, of `count`."""

    ranking: Ranking | None
    steps: tuple[Step, ...] = ()
    count: int = 0

    @property
    def best(self) -> Evaluation | None:
        return self.steps[0].score.evaluation if self.steps else None


def course_of(ranking: Ranking | None) -> Course:
    """A score that was withdrawn set no record, so what came after it may have. Three queries."""
    if ranking is None:
        return Course(None)
    found = _steps(ranking)
    steps = _told(found.order_by("-created_at", "-pk")[:SHOWN])
    return Course(ranking, tuple(steps), len(steps) if len(steps) < SHOWN else found.count())


def steps_page(ranking: Ranking | None, *, cursor: str, size: int) -> Page[Step]:
    """The steps from a cursor on, newest first."""
    page = newest_first(_steps(ranking) if ranking else Evaluation.objects.none(), cursor=cursor, size=size)
    return Page(_told(page.items), page.next)


def note_of(ranking: Ranking | None) -> str:
    """That the steps are not the board's ranking, in a sentence; empty where they are."""
    if ranking is None or not ranking.contract.over_seeds:
        return ""
    return f"These are single scores, and not the ranking of the board, which is by the {ranking.contract.get_over_seeds_display()}."


def _told(rows: Iterable[Evaluation]) -> list[Step]:
    whole = with_related(rows)
    befores: list[float | None] = [getattr(row, "before") for row in whole]
    return [
        Step(Score(rank=None, evaluation=row, is_current=True), None if before is None else abs(row.value - before))
        for row, before in zip(whole, befores, strict=True)
    ]


def _steps(ranking: Ranking) -> "QuerySet[Evaluation]":
    """Each with `before`, the best before it. What comes before a cursor is asked of the rows, and so are the windows: they look back alone."""
    contract, leading = ranking.contract, ranking.leading
    best = (Min if leading.is_lower_better else Max)("value")
    before = Window(best, order_by=[F("created_at").asc(), F("pk").asc()], frame=RowRange(end=-1))
    rows = standing().filter(FINITE, benchmark=contract.benchmark_id, contract=contract.pk, metric=leading.metric)
    better = Q(value__lt=F("before")) if leading.is_lower_better else Q(value__gt=F("before"))
    return rows.order_by().annotate(before=before).filter(Q(before=None) | better)
