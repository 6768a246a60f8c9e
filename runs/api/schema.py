"""Shapes of runs in the API (contracts.md I). GPU time enters as hours and leaves as integer milliseconds with its unit in the name."""

from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any, Literal

from django.conf import settings
from ninja import Query, Schema
from pydantic import BeforeValidator, ConfigDict, Field, StringConstraints

from workspaces.api.registry_shapes import Line

Name = Annotated[Line, StringConstraints(min_length=1, max_length=200)]
Words = Annotated[Line, StringConstraints(max_length=1000)]
NAMED_FLOATS = Literal["NaN", "Infinity", "-Infinity"]
LAST_MOMENT = 253_402_300_799  # the end of the year 9999, in seconds UTC
Offset = Annotated[int, Query(ge=0, lt=2**62)]
Piece = Annotated[int, Query(ge=1, le=settings.API_BODY_BYTES)]


def _no_truth(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError("This is a number, not true or false.")
    return value


Amount = Annotated[Decimal, BeforeValidator(_no_truth)]


class Strict(Schema):
    """What a client sends: unknown keys are refused, not ignored; a number is no text and no truth value."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class BudgetIn(Strict):
    gpu_hours: Annotated[Amount, Field(gt=0, le=100_000, max_digits=20)] | None = None
    api_spend: Annotated[Amount, Field(ge=0, le=10_000_000, max_digits=20)] | None = None


class LaunchIn(Strict):
    """What seed 000 sends, and what may come along."""

    benchmark_id: Name
    agent_id: Name
    dataset_ids: Annotated[list[Name], Field(max_length=50)] = []
    artifact_ids: Annotated[list[Name], Field(max_length=50)] = []
    compute_pool_id: Annotated[Line, StringConstraints(max_length=200)] = ""
    agent_version: Annotated[int, Field(ge=1, le=2**31 - 1, strict=True)] | None = None
    budget: BudgetIn = BudgetIn()
    parameters: Annotated[dict[str, Any], Field(max_length=200)] = {}
    seed: Annotated[int, Field(ge=-(2**63), lt=2**63, strict=True)] | None = None
    name: Annotated[Line, StringConstraints(max_length=200)] = ""
    reason: Words = ""
    priority: Annotated[int, Field(ge=-100, le=100, strict=True)] = 0


class ReasonIn(Strict):
    reason: Words = ""


class PriorityIn(ReasonIn):
    priority: Annotated[int, Field(ge=-100, le=100, strict=True)]


class MoveIn(ReasonIn):
    compute_pool_id: Annotated[Line, StringConstraints(min_length=1, max_length=200)]


class CancelManyIn(ReasonIn):
    run_ids: Annotated[list[Annotated[Line, StringConstraints(max_length=200)]], Field(min_length=1, max_length=1_000)]


class DecisionIn(Strict):
    content_hash: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
    comment: Words = ""


class LineOut(Schema):
    name: str
    answer: str
    words: str
    way_out: str
    unit: str
    window: str
    mode: str
    allowed: int | None
    used: int | None
    reserved: int | None
    asked: int | None


class EstimateOut(Schema):
    verdict: str
    limits: list[LineOut]
    reserved_gpu_ms: int
    wall_seconds: int
    median_gpu_ms: int | None
    like_runs: int
    cost_micros: int
    currency: str


class InputOut(Schema):
    """A dataset version by its content hash and role, or an artifact of an earlier run by its bytes' hash."""

    slug: str
    kind: str
    sha256: str
    dataset_id: str | None
    dataset_version: int | None
    dataset_version_id: str | None
    role: str | None
    artifact_id: str | None
    made_by_run_id: str | None


class CostOut(Schema):
    """Money in micro-units of `currency`: what was spent, and until `is_settled` what is held for the run at most."""

    micros: int
    currency: str
    is_settled: bool
    gpu_ms: int
    api_micros: int
    price_micros_per_gpu_hour: int


class ScoreOut(Schema):
    """`run_id` is the run that measured it: the run itself, or one that evaluated an artifact of it."""

    id: str
    run_id: str
    benchmark_id: str
    contract_version: int
    metric: str
    value: float | NAMED_FLOATS
    standard_error: float | NAMED_FLOATS | None
    samples: int | None
    errored: int | None = Field(description="Of `samples`, those that gave an error instead of an answer.")
    abstained: int | None = Field(description="Of `samples`, those that were not answered.")


class AttemptOut(Schema):
    id: str
    number: int
    status: str
    compute_pool_id: str
    started_at: datetime | None
    ended_at: datetime | None
    exit_code: int | None
    exit_signal: int | None
    exit_reason: str
    peak_memory_bytes: int | None
    cpu_ms: int | None


class BadLineOut(Schema):
    """A line that was not taken in, or without a number what is to be said of the whole file."""

    number: int | None
    reason: str


class BadFileOut(Schema):
    """What an attempt wrote into one of its files and was not taken in: how many lines, and the first of them."""

    attempt: int
    name: str
    count: int
    first: list[BadLineOut]


class LinksOut(Schema):
    """Addresses of this API where the rest is; `code` lists the files of the agent version with their hashes."""

    benchmark: str
    code: str
    certificate: str
    approval: str | None
    evaluations: str
    artifacts: str
    metrics: str
    logs: dict[str, str]
    ledger: str
    events: str


class RunOut(Schema):
    id: str
    uuid: str
    url: str
    name: str
    status: str
    reason_code: str
    reason: str
    kind: str
    benchmark_id: str
    number: int
    contract_version: int
    contract_hash: str
    agent_id: str
    agent_version: int
    agent_version_id: str
    agent_version_hash: str
    code_hash: str = Field(description="SHA-256 over the code bundle of the agent version")
    compute_pool_id: str
    inputs: list[InputOut]
    parameters: dict[str, Any]
    seed: int | None
    trigger: str
    trigger_reason: str
    requested_by: str
    retry_of: str | None
    sweep_id: str | None
    certificate: str
    approval: str | None = Field(description="The request that it waits for, while it waits for an approver.")
    content_hash: str
    isolation: str
    priority: int
    wall_seconds: int
    reserved_gpu_ms: int
    spent_gpu_ms: int
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    withdrawn_by: list[str] = Field(description="Withdrawals that hold and reach it.")
    cost: CostOut
    scores: list[ScoreOut]
    attempts: list[AttemptOut]
    bad_lines: list[BadFileOut] = Field(description="Lines of metrics.jsonl and events.jsonl that were not taken in, with their numbers.")
    links: LinksOut


class RunRow(Schema):
    id: str
    uuid: str
    url: str
    name: str
    status: str
    benchmark_id: str
    agent_id: str
    compute_pool_id: str
    spent_gpu_ms: int
    created_at: datetime
    ended_at: datetime | None


class RunPage(Schema):
    items: list[RunRow]
    next: str | None


class CertificateOut(Schema):
    id: str
    uuid: str
    verdict: str
    lines: list[LineOut]
    request: dict[str, Any]
    created_at: datetime


class ArtifactOut(Schema):
    id: str
    uuid: str
    url: str
    run_id: str
    name: str
    path: str
    kind: str
    bytes: int
    sha256: str
    created_at: datetime
    status: str = Field(description="kept; deleted: hidden, and to be removed at `goes_at`; or removed: its file is gone for good.")
    keep_until: datetime | None
    goes_at: datetime | None = Field(description="When its file is to be removed. Until then it can be restored, and its bytes count.")
    is_missing: bool = Field(description="Its file was not found whole in the store; what is promoted of it is suspended.")
    withdrawn_by: list[str] = Field(description="Withdrawals that hold and reach it; nothing new may rest on it.")


class ArtifactPage(Schema):
    items: list[ArtifactOut]
    next: str | None


class EvaluationOut(Schema):
    id: str
    uuid: str
    run_id: str
    benchmark_id: str
    contract_version: int
    metric: str
    value: float | NAMED_FLOATS
    standard_error: float | NAMED_FLOATS | None
    samples: int | None
    errored: int | None = Field(description="Of `samples`, those that gave an error instead of an answer.")
    abstained: int | None = Field(description="Of `samples`, those that were not answered.")
    withdrawn_by: list[str] = Field(description="Withdrawals that hold and reach it; it ranks on no board.")
    created_at: datetime


class EvaluationPage(Schema):
    items: list[EvaluationOut]
    next: str | None


class SeriesOut(Schema):
    key: str
    count: int
    last: float | NAMED_FLOATS | None
    last_step: int | None
    minimum: float | None
    maximum: float | None


class SeriesPage(Schema):
    items: list[SeriesOut]
    next: str | None


class PointIn(Strict):
    key: Annotated[Line, StringConstraints(min_length=1, max_length=250)]
    value: Annotated[float, Field(strict=True)] | NAMED_FLOATS
    step: Annotated[int, Field(ge=-(2**63), lt=2**63, strict=True)] = 0
    time: Annotated[float, Field(ge=0, le=LAST_MOMENT, strict=True)] | None = None


class PointsIn(Strict):
    points: Annotated[list[PointIn], Field(min_length=1, max_length=1000)]


class EventsIn(Strict):
    events: Annotated[list[dict[str, Any]], Field(min_length=1, max_length=100)]


class TakenOut(Schema):
    taken: int


class LogOut(Schema):
    text: str
    offset: int
    next_offset: int
    is_final: bool


class QueueRow(Schema):
    run_id: str
    name: str
    compute_pool_id: str
    priority: int
    position: int
    queued_at: datetime | None
    reason: str
    release: str


class HoldOut(Schema):
    by: str
    reason: str
    since: datetime


class QueuePage(Schema):
    items: list[QueueRow]
    next: str | None
    hold: HoldOut | None = Field(description="Who holds the queue, and why; nothing starts while it stands.")


class ReleasedOut(Schema):
    is_held: bool


class PrioritySetOut(Schema):
    run_id: str
    priority: int
    approval: str | None


class MovedOut(Schema):
    run_id: str
    compute_pool_id: str
    certificate: str
    reserved_gpu_ms: int


class CancelledOut(Schema):
    waiting: int = Field(description="Runs that had not started: they end within seconds.")
    working: int = Field(description="Runs that are being stopped.")
    left: int = Field(description="Runs that had ended or were ending already.")
