"""The shape of a scoreboard: what its page shows, as values."""

from datetime import datetime
from typing import Any, Literal

from ninja import Schema
from pydantic import Field

from runs.api.artifact import named
from runs.api.schema import NAMED_FLOATS
from runs.queries.board_checks import checks_of
from runs.queries.scoreboard import FARTHEST, Score, Scoreboard
from runs.queries.seed_board import SeedRow, Together
from runs.queries.unscored import UnscoredRun


class MeasuredOut(Schema):
    """A metric beside the score; `rank` is null where the score has none."""

    metric: str
    value: float | NAMED_FLOATS | None
    standard_error: float | NAMED_FLOATS | None
    rank: int | None


class NamedScoreOut(Schema):
    """Whose a score is, and how sure it is."""

    evaluation_id: str
    run_id: str
    run_name: str
    made_by_run_id: str = Field(description="The run whose work was measured.")
    agent: str
    agent_version: int
    standard_error: float | NAMED_FLOATS | None
    created_at: datetime


class CountedScoreOut(NamedScoreOut):
    """A score with the samples that it is of."""

    value: float | NAMED_FLOATS
    samples: int | None = Field(description="The denominator; of them `errored` gave an error, and `abstained` were not answered.")
    errored: int | None
    abstained: int | None
    doubts: list[str] = Field(description="What the score says and the file of its samples does not.")


class RankedScoreOut(CountedScoreOut):
    """`rank` is null where the score is no finite number; mean and median rank also where no metric is asked for."""

    rank: int | None
    sharing: int = Field(description="How many scores share the rank.")
    low: float | NAMED_FLOATS | None = Field(description="From here to `high`: the 95 % interval, 1.96 standard errors to either side.")
    high: float | NAMED_FLOATS | None
    is_isolated: bool
    isolation: str
    status: str = Field(description="Of the run that reported it.")
    metrics: list[MeasuredOut]
    mean_rank: float | None
    median_rank: float | None


class OlderScoreOut(CountedScoreOut):
    """A score under a version of the contract that holds no more: comparable with none of the board."""

    contract_version: int


class BoardCheckOut(Schema):
    """What speaks for or against the order of the first two; `verdict` is yes, no or unknown."""

    name: str
    verdict: Literal["yes", "no", "unknown"]
    observed: str
    required: str
    line: str


class ContractMetricOut(Schema):
    metric: str
    unit: str
    direction: Literal["maximize", "minimize"]


class TogetherOut(Schema):
    """Mean or median of one metric over runs that differ by their seed; interval and error are null where they are too few for one."""

    metric: str
    value: float | NAMED_FLOATS | None
    runs: int
    low: float | NAMED_FLOATS | None = Field(description="From here to `high`: the 95 % interval.")
    high: float | NAMED_FLOATS | None
    standard_error: float | NAMED_FLOATS | None = Field(description="Of a mean.")


class SeedRowOut(Schema):
    """Runs of one agent version with the same parameters but for `seed`; `rank` is null where one of their scores is no finite number."""

    rank: int | None
    sharing: int
    agent: str
    agent_version: int
    parameters: dict[str, Any]
    seeds: int
    score: TogetherOut
    metrics: list[TogetherOut]
    first_at: datetime


class UnscoredOut(Schema):
    """A run of the contract that ended and left no score under it; `reason` is empty where nothing is known beyond its status."""

    run_id: str
    run_name: str
    agent: str
    agent_version: int
    status: str
    isolation: str
    reason: str
    ended_at: datetime | None


class ScoreboardOut(Schema):
    """Scores under one version of the contract, the one that holds now where no other is asked for. `total` counts those of the whole board,
    `ranked` those of them that have a rank.

    Where the contract ranks over seeds, `over_seeds` says how, and the rows are in `seed_rows` instead of `items`, `seed_rows_total` of them.
    """

    benchmark_id: str
    contract_version: int | None
    metric: str | None = Field(description="The metric that ranks.")
    unit: str | None
    direction: Literal["maximize", "minimize"] | None
    metrics: list[ContractMetricOut] = Field(description="Of the contract, the first one before those that stand beside it.")
    total: int
    ranked: int
    metrics_reported: list[str] = Field(description="Other metrics under this contract, of which `metric` may name some.")
    items: list[RankedScoreOut]
    tie_rule: Literal["shared_rank", "earlier_first"] | None
    over_seeds: Literal["mean", "median"] | None
    seed_rows: list[SeedRowOut]
    seed_rows_total: int
    withdrawn: int = Field(description="Scores that rest on what was withdrawn, and stand on no rank.")
    unscored: list[UnscoredOut] = Field(description="The newest runs without a score, on every page of the board alike.")
    unscored_total: int = Field(
        description="Among the newest runs of the contract; `unscored_has_older` says that older ones were not looked at."
    )
    unscored_has_older: bool
    checks: list[BoardCheckOut] = Field(description="May the board be trusted; empty where the page asked for has no scores.")
    older: list[OlderScoreOut] = Field(description="The newest scores under older versions, on every page of the board that holds now.")
    next: str | None


def scoreboard_of(benchmark_id: str, board: Scoreboard) -> dict[str, Any]:
    """A page of the board, as ScoreboardOut."""
    contract, together = board.contract, board.over_seeds
    last, total = (together.last, together.total) if together else (board.last, board.total)
    return {
        "benchmark_id": benchmark_id,
        "contract_version": contract and contract.version,
        "metric": contract and board.leading.metric,
        "unit": contract and board.leading.unit,
        "direction": contract and board.leading.direction,
        "metrics": [each.as_json() for each in contract.all_metrics] if contract else [],
        "total": board.total,
        "ranked": board.ranked,
        "metrics_reported": board.offered,
        "items": [_score(board, score) for score in board.scores],
        "tie_rule": contract and contract.tie_rule,
        "over_seeds": together and together.over,
        "seed_rows": [_seed_row(board, row) for row in together.rows] if together else [],
        "seed_rows_total": together.total if together else 0,
        "withdrawn": board.withdrawn,
        "unscored": [_unscored(row) for row in board.unscored.rows],
        "unscored_total": board.unscored.total,
        "unscored_has_older": board.unscored.has_older,
        "checks": checks_of(board),
        "older": [{**_counted(score), "contract_version": score.evaluation.contract.version} for score in board.older],
        "next": str(last) if last > board.view.start and last < min(total, FARTHEST) else None,
    }


def _seed_row(board: Scoreboard, row: SeedRow) -> dict[str, Any]:
    return {
        "rank": row.rank,
        "sharing": row.sharing,
        "agent": row.version.agent.slug,
        "agent_version": row.version.number,
        "parameters": row.parameters,
        "seeds": row.seeds,
        "score": _together(board.leading.metric, row.score),
        "metrics": [_together(name, other) for name, other in zip(board.columns, row.others, strict=True)],
        "first_at": row.first_at,
    }


def _together(metric: str, found: Together) -> dict[str, Any]:
    between = found.interval
    return {
        "metric": metric,
        "value": named(found.value),
        "runs": found.count,
        "low": between and named(between.low),
        "high": between and named(between.high),
        "standard_error": named(found.error),
    }


def _score(board: Scoreboard, score: Score) -> dict[str, Any]:
    row, ranks, between = score.evaluation, score.ranks, score.interval
    columns = zip(board.columns, score.others, ranks.of[1:] if ranks else [None] * len(score.others), strict=True)
    return {
        **_counted(score),
        "rank": score.rank,
        "sharing": score.sharing,
        "low": between and named(between.low),
        "high": between and named(between.high),
        "is_isolated": score.is_isolated,
        "isolation": score.isolation,
        "status": row.run.status,
        "metrics": [
            {"metric": name, "value": named(other.value), "standard_error": named(other.standard_error), "rank": rank}
            for name, other, rank in columns
        ],
        "mean_rank": ranks and ranks.mean,
        "median_rank": ranks and ranks.median,
    }


def _counted(score: Score) -> dict[str, Any]:
    row = score.evaluation
    return {**named_score(score), "samples": row.samples, "errored": row.errored, "abstained": row.abstained, "doubts": score.doubts}


def named_score(score: Score) -> dict[str, Any]:
    """What every row says of a score: whose it is, and what it is."""
    row, made = score.evaluation, score.made_by
    return {
        "evaluation_id": row.public_id,
        "run_id": row.run.public_id,
        "run_name": row.run.name,
        "made_by_run_id": made.public_id,
        "agent": made.agent.slug,
        "agent_version": made.agent_version.number,
        "value": named(row.value),
        "standard_error": named(row.standard_error),
        "created_at": row.created_at,
    }


def _unscored(row: UnscoredRun) -> dict[str, Any]:
    return {
        "run_id": row.run.public_id,
        "run_name": row.run.name,
        "agent": row.run.agent.slug,
        "agent_version": row.run.agent_version.number,
        "status": row.run.status,
        "isolation": row.run.isolation,
        "reason": row.reason,
        "ended_at": row.run.ended_at,
    }
