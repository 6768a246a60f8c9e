"""Answers and bodies of the three registry nouns."""

import base64
from datetime import date, datetime
from typing import Annotated, Any, Literal, TypeVar
from uuid import UUID

from django.conf import settings
from django.urls import reverse
from ninja import Query, Schema
from pydantic import AfterValidator, AwareDatetime, ConfigDict, Field

from workspaces.api.door import ApiRequest
from workspaces.audit import Refusal
from workspaces.commands.benchmark import MOST_RUNS
from workspaces.commands.contract_parts import MOST_MEMORY
from workspaces.contract_metrics import MOST_METRICS
from workspaces.models import Agent, AgentVersion, Benchmark, Contract, Dataset, NotFound, Owned
from workspaces.queries.registry import AgentVersionRow
from workspaces.text import UNSTORABLE, is_storable
from workspaces.windows import OUTSIDE_CALENDAR, is_in_calendar

M = TypeVar("M", bound=Owned)
D = TypeVar("D", bound=date)
Size = Annotated[int, Query(ge=1, le=settings.API_PAGE_SIZE_MAX)]
Cursor = Annotated[str, Query(max_length=300)]
Text = Annotated[str, Query(max_length=200)]


def _in_calendar(given: D) -> D:
    if not is_in_calendar(given):
        raise ValueError(OUTSIDE_CALENDAR)
    return given


def _storable(text: str) -> str:
    if not is_storable(text):
        raise ValueError(f"This holds {UNSTORABLE}.")
    return text


def _base64(text: str) -> str:
    try:
        base64.b64decode(text, validate=True)
    except ValueError as error:
        raise ValueError("This is not base64 (RFC 4648).") from error
    return text


Line = Annotated[str, AfterValidator(_storable)]
Instant = Annotated[AwareDatetime, AfterValidator(_in_calendar)]
Day = Annotated[date, AfterValidator(_in_calendar)]


class Body(Schema):
    """What a client sends: keys that mean nothing are refused, not ignored."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class MetricIn(Body):
    metric: Line = Field(min_length=1, max_length=250)
    unit: Line = Field("", max_length=40)
    direction: Literal["maximize", "minimize"] = "maximize"


VersionName = Annotated[Line | None, Field(max_length=200)]


class ContractIn(Body):
    metric: Line = Field(min_length=1, max_length=250)
    direction: Literal["maximize", "minimize"]
    unit: Line = Field("", max_length=40)
    holdout: Line | None = Field(
        None, max_length=200, description="A dataset version with the role holdout: `<dataset>@<number>` or its id."
    )
    wall_seconds: int | None = Field(None, ge=1, le=2_592_000)
    terms: Line = Field("", max_length=20_000)
    accepts_no_isolation_reason: Line = Field("", max_length=1000, description="Only an owner may say why.")
    runs_per_person: int | None = Field(
        None, ge=1, le=MOST_RUNS, description="Runs that were or may still be scored that one person may ask for in each `period`."
    )
    period: Literal["", "day", "week", "month"] = Field("", description="Cut at midnights of the workspace's zone.")
    metrics: list[MetricIn] = Field([], max_length=MOST_METRICS, description="Beside `metric`, which ranks.")
    over_seeds: Literal["", "mean", "median"] = Field("", description="By what runs that are alike but for the seed are ranked.")
    tie_rule: Literal["shared_rank", "earlier_first"] = Field(
        "shared_rank", description="Equal whole values share a rank (1, 2, 2, 4), or the earlier one has the better rank (1, 2, 3, 4)."
    )
    opens_at: Instant | None = Field(None, description="From when on runs may be asked for.")
    closes_at: Instant | None = Field(None, description="From when on they may not any more.")
    memory_bytes: int | None = Field(None, ge=1, le=MOST_MEMORY)
    counts_all_samples: bool = Field(False, description="Samples that erred or were abstained from stay in the denominator.")
    evaluator: VersionName = Field(None, description="The one agent version whose runs score: `<agent>@<number>` or its id.")
    train: VersionName = Field(None, description="A dataset version, as for `holdout`.")
    validation: VersionName = Field(None, description="A dataset version, as for `holdout`.")


class ContractPublish(ContractIn):
    reason: Line = Field("", max_length=1000)


class BenchmarkIn(Body):
    slug: Line = Field(max_length=64)
    name: Line = Field("", max_length=200)
    description: Line = Field("", max_length=20_000)
    is_public: bool = False
    contract: ContractIn | None = None


class BenchmarkImportIn(Body):
    workspace: Line = Field(max_length=64, description="Id of the workspace that made it public.")
    benchmark: Line = Field(max_length=64, description="Id of the benchmark there.")
    slug: Line = Field("", max_length=64, description="The copy's own id; empty: as at its source.")


class SourceOut(Schema):
    """Of a frozen copy: names and keys as they were when it was made; the state, and the newest version of the source, as they were seen last."""

    workspace: str
    workspace_slug: str
    workspace_id: str
    benchmark: str
    benchmark_slug: str
    benchmark_id: str
    state: Literal["current", "newer", "withdrawn"]
    version: int | None


class ContractOut(Schema):
    id: str
    uuid: UUID
    version: int
    metric: str
    unit: str
    direction: str
    holdout: str | None
    wall_seconds: int | None
    accepts_no_isolation_reason: str
    runs_per_person: int | None
    period: str
    terms: str
    metrics: list[MetricIn]
    over_seeds: str
    tie_rule: Literal["shared_rank", "earlier_first"]
    opens_at: datetime | None
    closes_at: datetime | None
    memory_bytes: int | None
    counts_all_samples: bool
    evaluator: str | None
    train: str | None
    validation: str | None
    source_version: int | None = Field(description="Of a frozen copy: the version of the source's contract.")
    content: dict[str, Any] = Field(
        description="What `content_hash` is the SHA-256 of, as JSON with sorted keys and no blanks; {}: not kept."
    )
    content_hash: str
    created_at: datetime


class ContractList(Schema):
    items: list[ContractOut]
    next: str | None


class BenchmarkOut(Schema):
    id: str
    uuid: UUID
    status: Literal["defined", "declared"]
    slug: str
    name: str
    description: str
    is_public: bool
    source: SourceOut | None
    contract: ContractOut | None
    created_at: datetime
    url: str


class BenchmarkList(Schema):
    items: list[BenchmarkOut]
    next: str | None


class AgentIn(Body):
    slug: Line = Field(max_length=64)
    name: Line = Field("", max_length=200)
    description: Line = Field("", max_length=20_000)
    part: Line = Field("", max_length=40)


class CodeFileIn(Body):
    path: Line = Field(max_length=1024)
    content_base64: Annotated[str, Field(max_length=settings.API_BODY_BYTES), AfterValidator(_base64)]
    is_executable: bool = False


class OutputIn(Body):
    glob: Line = Field(max_length=1024)
    name: Line = Field("", max_length=250)
    kind: Line = Field("file", max_length=20)


class InputIn(Body):
    kind: Literal["dataset", "artifact"]
    role: Line = Field("", max_length=20)
    name: Line = Field("", max_length=64)
    required: bool = True


class AgentVersionSpec(Body):
    argv: list[Annotated[Line, Field(max_length=1000)]] = Field(min_length=1, max_length=64)
    kind: Line = Field("train", max_length=20)
    parameter_schema: dict[str, Any] = Field(default_factory=dict)
    environment: dict[Line, Annotated[Line, Field(max_length=4096)]] = Field(default_factory=dict, max_length=32)
    inputs: list[InputIn] = Field(default_factory=list, max_length=32)
    outputs: list[OutputIn] = Field(default_factory=list, max_length=32)
    pools: list[Annotated[Line, Field(max_length=100)]] = Field(default_factory=list, max_length=32)
    secrets: list[Annotated[Line, Field(max_length=64)]] = Field(default_factory=list, max_length=32)
    tools: list[Annotated[Line, Field(max_length=64)]] = Field(default_factory=list, max_length=32)
    slots: int = Field(1, ge=1, le=1024)
    wall_seconds: int = Field(3600, ge=1, le=2_592_000)
    memory_bytes: int | None = Field(None, ge=1, le=2**44)
    completion: Literal["exit", "done"] = "exit"
    reason: Line = Field("", max_length=1000)


class AgentVersionIn(AgentVersionSpec):
    files: list[CodeFileIn] = Field(min_length=1, max_length=1000)


class CodeFileOut(Schema):
    path: str
    sha256: str
    bytes: int
    is_executable: bool


class AgentVersionOut(Schema):
    id: str
    uuid: UUID
    number: int
    kind: str
    argv: list[str]
    parameter_schema: dict[str, Any]
    environment: dict[str, str]
    inputs: list[dict[str, Any]]
    outputs: list[dict[str, Any]]
    pools: list[str]
    secrets: list[str]
    tools: list[str]
    slots: int
    wall_seconds: int
    memory_bytes: int | None
    completion: str
    bundle_hash: str
    content_hash: str
    files: list[CodeFileOut]
    created_at: datetime
    url: str


class AgentVersionList(Schema):
    items: list[AgentVersionOut]
    next: str | None


class AgentOut(Schema):
    id: str
    uuid: UUID
    status: Literal["defined", "declared"]
    slug: str
    name: str
    description: str
    part: str
    version: int | None
    created_at: datetime
    url: str


class AgentList(Schema):
    items: list[AgentOut]
    next: str | None


def made_before(request: ApiRequest, model: type[M]) -> M | None:
    """The row that an earlier request with the same Idempotency-Key made, should its answer have been lost."""
    return model.objects.filter(pk=request.chosen_id).first() if request.chosen_id else None


def named_by(model: type[M], text: str, field: str) -> M | None:
    """The row that a filter names, by id, slug or UUID; None where the filter is left out. Refuses (422) one that is not here, be it missing
    or foreign: an empty list would look like an answer."""
    if not text:
        return None
    try:
        return model.objects.find(text)
    except NotFound as error:
        raise Refusal(f"There is no such {error.noun} here.", field=field) from error


# --- Rows as answers ------------------------------------------------------------------------------------------------------------------------


def address(request: ApiRequest, name: str, *parts: str) -> str:
    return reverse(name, args=[request.workspace.slug, *parts])


def contract_out(contract: Contract) -> dict[str, Any]:
    return {
        "id": contract.public_id,
        "uuid": contract.pk,
        "version": contract.version,
        "metric": contract.metric,
        "unit": contract.unit,
        "direction": contract.direction,
        "holdout": contract.holdout.public_id if contract.holdout else None,
        "wall_seconds": contract.wall_seconds,
        "accepts_no_isolation_reason": contract.accepts_no_isolation_reason,
        "runs_per_person": contract.runs_per_person,
        "period": contract.period,
        "terms": contract.terms,
        "metrics": contract.metrics,
        "over_seeds": contract.over_seeds,
        "tie_rule": contract.tie_rule,
        "opens_at": contract.opens_at,
        "closes_at": contract.closes_at,
        "memory_bytes": contract.memory_bytes,
        "counts_all_samples": contract.counts_all_samples,
        "evaluator": contract.evaluator.public_id if contract.evaluator else None,
        "train": contract.train.public_id if contract.train else None,
        "validation": contract.validation.public_id if contract.validation else None,
        "source_version": contract.source_version,
        "content": contract.content,
        "content_hash": contract.content_hash,
        "created_at": contract.created_at,
    }


def benchmark_out(request: ApiRequest, benchmark: Benchmark, contract: Contract | None) -> dict[str, Any]:
    return {
        **named(benchmark),
        "status": "defined" if contract else "declared",
        "is_public": benchmark.is_public,
        "source": {**benchmark.source, "state": benchmark.source_state, "version": benchmark.source_version} if benchmark.source else None,
        "contract": contract_out(contract) if contract else None,
        "url": address(request, "benchmark", benchmark.slug),
    }


def agent_out(request: ApiRequest, agent: Agent, version: AgentVersion | None) -> dict[str, Any]:
    return {
        **named(agent),
        "status": "defined" if version else "declared",
        "part": agent.part,
        "version": version.number if version else None,
        "url": address(request, "agent", agent.slug),
    }


def agent_version_out(request: ApiRequest, agent: Agent, row: AgentVersionRow) -> dict[str, Any]:
    version = row.version
    copied = ("number", "kind", "argv", "parameter_schema", "environment", "inputs", "outputs", "secrets", "tools", "slots", "wall_seconds",
              "memory_bytes", "completion", "bundle_hash", "content_hash", "created_at")  # fmt: skip
    return {
        "id": version.public_id,
        "uuid": version.pk,
        **{name: getattr(version, name) for name in copied},
        "pools": row.pools,
        "files": [
            {"path": file.path, "sha256": file.blob.sha256, "bytes": file.blob.bytes, "is_executable": file.is_executable}
            for file in row.files
        ],
        "url": address(request, "agent", agent.slug),
    }


def named(row: Benchmark | Dataset | Agent) -> dict[str, Any]:
    return {
        "id": row.public_id,
        "uuid": row.pk,
        "slug": row.slug,
        "name": row.name,
        "description": row.description,
        "created_at": row.created_at,
    }
