"""What the upper floor knows of a benchmark: its scoreboard, and how many runs the caller has left on it."""

from datetime import datetime
from typing import Annotated, Any, Literal

from django.conf import settings
from django.utils import timezone
from ninja import Query, Schema
from pydantic import Field

from runs.api.artifact import named
from runs.api.schema import NAMED_FLOATS
from runs.queries.quota import quota_of
from runs.queries.scoreboard import FARTHEST, MOST_COLUMNS, BoardView, Score, Scoreboard, scoreboard
from workspaces.access import Kind, Permission
from workspaces.api.door import ApiRequest, Routes
from workspaces.api.registry_shapes import Size
from workspaces.models import Benchmark
from workspaces.queries.registry import current_contract

routes = Routes("benchmarks")


Place = Annotated[str, Query(pattern=r"^[0-9]{0,6}$")]  # how many scores of the board stand before the first
Metrics = Annotated[tuple[Annotated[str, Field(max_length=250)], ...], Query(max_length=MOST_COLUMNS)]


class MeasuredOut(Schema):
    """A metric beside the score; `rank` is null where the score has none."""

    metric: str
    value: float | NAMED_FLOATS | None
    standard_error: float | NAMED_FLOATS | None
    rank: int | None


class RankedScoreOut(Schema):
    """`rank` is null where the score is no finite number; mean and median rank also where no metric is asked for."""

    rank: int | None
    sharing: int = Field(description="How many scores share the rank.")
    evaluation_id: str
    run_id: str
    run_name: str
    made_by_run_id: str = Field(description="The run whose work was measured.")
    agent: str
    agent_version: int
    value: float | NAMED_FLOATS
    standard_error: float | NAMED_FLOATS | None
    samples: int | None
    is_isolated: bool
    metrics: list[MeasuredOut]
    mean_rank: float | None
    median_rank: float | None
    created_at: datetime


class ScoreboardOut(Schema):
    """Scores under the contract that holds now. `total` counts those of the whole board, `ranked` those of them that have a rank."""

    benchmark_id: str
    contract_version: int | None
    metric: str | None
    direction: Literal["maximize", "minimize"] | None
    total: int
    ranked: int
    metrics_reported: list[str] = Field(description="Other metrics under this contract, of which `metric` may name some.")
    items: list[RankedScoreOut]
    next: str | None


class RunsLeftOut(Schema):
    """All but `benchmark_id` and `zone` are null where the contract limits nobody. `next_allowed_at` is null while there are runs left."""

    benchmark_id: str
    allowed: int | None = None
    period: Literal["day", "week", "month"] | None = None
    used: int | None = None
    under_way: int | None = None
    left: int | None = None
    starts_at: datetime | None = None
    ends_at: datetime | None = None
    next_allowed_at: datetime | None = None
    zone: str


@routes.get("/benchmarks/{benchmark}/scoreboard", needs=Permission.VIEW, kind=Kind.EVALUATION, response=ScoreboardOut)
def get_scoreboard(
    request: ApiRequest,
    benchmark: str,
    metric: Metrics = (),
    lower: Metrics = (),
    rows: Literal["all", "best"] = "all",
    order: Literal["score", "mean", "median"] = "score",
    cursor: Place = "",
    limit: Size = settings.API_PAGE_SIZE,
) -> dict[str, Any]:
    """Scores, best first; `rows=best`: the best of each agent alone.

    `metric`, up to four times, shows other metrics beside the score, with mean and median rank over the score and them; `order` stands the scores
    by one of these. More of a metric is better unless `lower` names it too. Equal values share a rank; a run that reported no finite number of a
    metric stands behind all that did.
    """
    found = Benchmark.objects.find(benchmark)
    view = BoardView(rows == "best", metric, lower, order, int(cursor or 0))
    board = scoreboard(found, view, older_limit=0, size=limit)
    contract = board.contract
    return {
        "benchmark_id": found.public_id,
        "contract_version": contract and contract.version,
        "metric": contract and contract.metric,
        "direction": contract and contract.direction,
        "total": board.total,
        "ranked": board.ranked,
        "metrics_reported": board.offered,
        "items": [_score(board, score) for score in board.scores],
        "next": str(board.last) if board.scores and board.last < min(board.total, FARTHEST) else None,
    }


def _score(board: Scoreboard, score: Score) -> dict[str, Any]:
    row, made, ranks = score.evaluation, score.made_by, score.ranks
    columns = zip(board.view.metrics, score.others, ranks.of[1:] if ranks else [None] * len(score.others), strict=True)
    return {
        "rank": score.rank,
        "sharing": score.sharing,
        "evaluation_id": row.public_id,
        "run_id": row.run.public_id,
        "run_name": row.run.name,
        "made_by_run_id": made.public_id,
        "agent": made.agent.slug,
        "agent_version": made.agent_version.number,
        "value": named(row.value),
        "standard_error": named(row.standard_error),
        "samples": row.samples,
        "is_isolated": score.is_isolated,
        "metrics": [
            {"metric": name, "value": named(other.value), "standard_error": named(other.standard_error), "rank": rank}
            for name, other, rank in columns
        ],
        "mean_rank": ranks and ranks.mean,
        "median_rank": ranks and ranks.median,
        "created_at": row.created_at,
    }


@routes.get("/benchmarks/{benchmark}/runs-left", needs=Permission.VIEW, kind=Kind.RUN, response=RunsLeftOut)
def get_runs_left(request: ApiRequest, benchmark: str) -> dict[str, Any]:
    """How many runs the caller may still ask for under the contract that holds now, and from when the next one is allowed.

    `used` are the caller's runs of this period that were or may still be scored, or that they cancelled; `under_way` of those still give their
    place back if they end without a score.
    """
    found = Benchmark.objects.find(benchmark)
    contract = current_contract(found.pk)
    zone = request.workspace.zone or "UTC"
    quota = quota_of(contract, request.actor.user, now=timezone.now(), workspace=request.workspace) if contract else None
    if quota is None:
        return {"benchmark_id": found.public_id, "zone": zone}
    return {
        "benchmark_id": found.public_id,
        "allowed": quota.allowed,
        "period": quota.period,
        "used": quota.used,
        "under_way": quota.under_way,
        "left": quota.left,
        "starts_at": quota.window.starts_at,
        "ends_at": quota.window.ends_at,
        "next_allowed_at": quota.next_allowed_at,
        "zone": zone,
    }
