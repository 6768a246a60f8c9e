"""What the upper floor knows of a benchmark: its scoreboard, and how many runs the caller has left on it."""

from datetime import datetime
from typing import Annotated, Any, Literal

from django.conf import settings
from django.utils import timezone
from ninja import Query, Schema
from pydantic import Field

from runs.api.artifact import named
from runs.api.schema import NAMED_FLOATS
from runs.api.scoreboard_shapes import NamedScoreOut, ScoreboardOut, named_score, scoreboard_of
from runs.models import Artifact
from runs.policy.sequential import LEAST_RATE, MOST_ELO, MOST_RATE
from runs.queries.arena import arena
from runs.queries.head_to_head import USUAL, Question, head_to_head
from runs.queries.over_time import note_of, steps_page
from runs.queries.quota import quota_of
from runs.queries.scoreboard import MOST_COLUMNS, BoardView, ranking_of, scoreboard
from workspaces.access import Kind, Permission
from workspaces.api.door import ApiRequest, Routes
from workspaces.api.registry_shapes import Cursor, Size
from workspaces.audit import Denied
from workspaces.models import Benchmark, NotFound
from workspaces.queries.paging import in_order
from workspaces.queries.registry import current_contract

routes = Routes("benchmarks")


Place = Annotated[str, Query(pattern=r"^[0-9]{0,6}$")]  # how many scores of the board stand before the first
Elo = Annotated[float, Field(ge=-MOST_ELO, le=MOST_ELO)]
ErrorRate = Annotated[float, Field(ge=LEAST_RATE, le=MOST_RATE)]
RankedBy = Annotated[str, Query(max_length=250)]
Version = Annotated[int, Query(ge=0, lt=10**7)]  # of the contract
Metrics = Annotated[tuple[Annotated[str, Field(max_length=250)], ...], Query(max_length=MOST_COLUMNS)]


class PlayerOut(Schema):
    """Elo against the reference; `low` to `high` is its 95 % interval. `points` (a draw is a half) of `games`."""

    rank: int
    artifact_id: str | None
    run_id: str | None
    elo: float
    standard_error: float
    low: float
    high: float
    points: float
    games: int
    opponents: int
    is_reference: bool


class ArenaOut(Schema):
    """`apart` artifacts met none of those that are rated. `has_prior`: one drawn game was added to each two that met, since some have won or lost
    all. `unread` files of games could not be read. `is_cut`: there are more than were read.
    `is_unrated`: the results are too far apart to be rated, so that nobody is listed."""

    benchmark_id: str
    contract_version: int | None
    evaluations: int
    games: int
    apart: int
    unread: int
    has_prior: bool
    is_cut: bool
    is_unrated: bool
    items: list[PlayerOut]
    next: str | None


class PlayedOut(Schema):
    """`pairs`: how often the first had 0, 1/2, 1, 3/2 and 2 points of a pair of games in this run. `pairs_so_far` and
    `log_likelihood_ratio` are null for games after the answer."""

    run_id: str
    ended_at: datetime
    pairs: tuple[int, int, int, int, int]
    pairs_so_far: int | None
    log_likelihood_ratio: float | None


class SequentialOut(Schema):
    """`accepted`: H0, H1, or empty where neither is. `points` of `pairs` of games; the ratio was `log_likelihood_ratio` then, and H0 is accepted at
    `low`, H1 at `high`. `is_cut`: there are more games than were read."""

    benchmark_id: str
    contract_version: int
    accepted: Literal["", "H0", "H1"]
    pairs: int
    points: float
    log_likelihood_ratio: float
    low: float
    high: float
    is_cut: bool
    items: list[PlayedOut]
    next: str | None


class BestOut(NamedScoreOut):
    """A score that was better than all before it; `by` is null for the first."""

    value: float
    by: float | NAMED_FLOATS | None


class CourseOut(Schema):
    """Newest first. What was withdrawn set no record."""

    benchmark_id: str
    contract_version: int | None
    metric: str | None
    unit: str | None
    direction: Literal["maximize", "minimize"] | None
    note: str = Field(description="That these are single scores, where the board ranks over seeds; else empty.")
    items: list[BestOut]
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
    rows: Literal["", "all", "best"] = "",
    by: RankedBy = "",
    order: Literal["score", "mean", "median"] = "score",
    contract: Version = 0,
    cursor: Place = "",
    limit: Size = settings.API_PAGE_SIZE,
) -> dict[str, Any]:
    """Scores, best first; `rows=best`: the best of each agent alone; `rows=all`: each for itself, also where the contract ranks over seeds.

    `contract` asks for the board under a version that holds no more, ranked by that version's own rules; its scores are never mixed with others.
    `by` names the metric of the contract that ranks, each in its own direction. Metrics of the contract are shown beside it where `metric` names
    none. `metric`, up to four times, shows others beside the score, with mean and median rank over the score and them; `order` stands the scores
    by one of these. More of a metric that the contract does not name is better unless `lower` names it too. Equal values share a rank;
    where `tie_rule` of the contract is `earlier_first`, the earlier of equal scores has the better one. A run that reported no finite number of a
    metric stands behind all that did.
    """
    found = Benchmark.objects.find(benchmark)
    view = BoardView(
        is_best=rows == "best",
        metrics=metric,
        lower=lower,
        order=order,
        start=int(cursor or 0),
        is_single=rows == "all",
        by=by,
        version=contract,
    )
    board = scoreboard(found, view, size=limit)
    return scoreboard_of(found.public_id, board)


@routes.get("/benchmarks/{benchmark}/arena", needs=Permission.VIEW, kind=Kind.EVALUATION, response=ArenaOut)
def get_arena(request: ApiRequest, benchmark: str, cursor: Cursor = "", limit: Size = 50) -> dict[str, Any]:
    """Artifacts by the games that evaluations have played between them, best first: Elo by Bradley and Terry's model with 95 % intervals, against
    the reference, whose own is 0. `artifact_id` and `run_id` are null where the caller may see no artifacts."""
    found = Benchmark.objects.find(benchmark)
    board, sees = arena(found), request.rights.allows(Permission.VIEW, Kind.ARTIFACT)
    page = in_order(board.players, lambda player: (player.rank, player.artifact.pk.hex), cursor=cursor, size=limit)
    return {
        "benchmark_id": found.public_id,
        "contract_version": board.contract and board.contract.version,
        "evaluations": board.runs,
        "games": board.games,
        "apart": len(board.apart),
        "unread": board.unread,
        "has_prior": board.has_prior,
        "is_cut": board.is_cut,
        "is_unrated": board.is_unrated,
        "items": [
            {
                "rank": player.rank,
                "artifact_id": player.artifact.public_id if sees else None,
                "run_id": player.artifact.run.public_id if sees else None,
                "elo": player.rating.elo,
                "standard_error": player.rating.error,
                "low": player.rating.low,
                "high": player.rating.high,
                "points": player.points,
                "games": player.games,
                "opponents": player.opponents,
                "is_reference": player.is_reference,
            }
            for player in page.items
        ],
        "next": page.next,
    }


@routes.get("/benchmarks/{benchmark}/arena/sequential", needs=Permission.VIEW, kind=Kind.EVALUATION, response=SequentialOut)
def get_sequential(
    request: ApiRequest,
    benchmark: str,
    first: str,
    second: str,
    elo0: Elo = USUAL.elo0,
    elo1: Elo = USUAL.elo1,
    alpha: ErrorRate = USUAL.alpha,
    beta: ErrorRate = USUAL.beta,
    cursor: Cursor = "",
    limit: Size = 50,
) -> dict[str, Any]:
    """Whether an artifact is stronger than another: Wald's sequential probability ratio test of `elo0` against `elo1`, over the games that the arena
    counts, in the order in which their runs ended. The first bound that is passed answers; `alpha` and `beta` are the error rates. For whoever may
    see artifacts and runs too."""
    for kind in (Kind.ARTIFACT, Kind.RUN):
        if not request.rights.allows(Permission.VIEW, kind):
            raise Denied(Permission.VIEW, kind)
    found = Benchmark.objects.find(benchmark)
    contract = current_contract(found.pk)
    both = Artifact.objects.find(first), Artifact.objects.find(second)
    if contract is None:
        raise NotFound("contract")
    told = head_to_head(contract, *both, Question(elo0, elo1, alpha, beta))
    page = in_order(enumerate(told.played), lambda entry: (entry[0],), cursor=cursor, size=limit)
    return {
        "benchmark_id": found.public_id,
        "contract_version": contract.version,
        "accepted": told.said.accepted,
        "pairs": told.said.pairs,
        "points": told.said.points,
        "log_likelihood_ratio": told.said.ratio,
        "low": told.said.low,
        "high": told.said.high,
        "is_cut": told.is_cut,
        "items": [
            {
                "run_id": each.run.public_id,
                "ended_at": each.run.ended_at,
                "pairs": each.pairs,
                "pairs_so_far": each.after and each.after.pairs,
                "log_likelihood_ratio": each.after and each.after.ratio,
            }
            for _, each in page.items
        ],
        "next": page.next,
    }


@routes.get("/benchmarks/{benchmark}/over-time", needs=Permission.VIEW, kind=Kind.EVALUATION, response=CourseOut)
def get_over_time(
    request: ApiRequest,
    benchmark: str,
    by: RankedBy = "",
    contract: Version = 0,
    cursor: Cursor = "",
    limit: Size = settings.API_PAGE_SIZE,
) -> dict[str, Any]:
    """How the best score came about: each that was better than all before it. `by` and `contract` ask as they do of the scoreboard."""
    found = Benchmark.objects.find(benchmark)
    ranking = ranking_of(found, by=by, version=contract)
    page = steps_page(ranking, cursor=cursor, size=limit)
    return {
        "benchmark_id": found.public_id,
        "contract_version": ranking and ranking.contract.version,
        "metric": ranking and ranking.leading.metric,
        "unit": ranking and ranking.leading.unit,
        "direction": ranking and ranking.leading.direction,
        "note": note_of(ranking),
        "items": [{**named_score(step.score), "by": named(step.by)} for step in page.items],
        "next": page.next,
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
