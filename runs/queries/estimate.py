"""What a launch would rest on and cost, and whether it may start: the same look that `launch_run` takes under its locks."""

from dataclasses import dataclass
from statistics import median
from typing import Any

from django.utils import timezone

from runs.admission import Facts, LimitFacts, Rule, Verdict, decide
from runs.launch import LaunchRequest
from runs.lifecycle import ACTIVE, RunStatus
from runs.models import Artifact, Run
from runs.queries.parameters import checked_parameters
from workspaces import scope
from workspaces.access import Actor
from workspaces.audit import Draft, Refusal, digest
from workspaces.ledger import Standing, standings
from workspaces.models import (
    Agent,
    AgentVersion,
    Benchmark,
    Contract,
    Dataset,
    DatasetVersion,
    NotFound,
    Pool,
    Unit,
    Workspace,
)
from workspaces.queries.workspace import creation_steps

GRACE_SECONDS = 10  # between the polite and the hard end of a run
POLL_SECONDS = 2  # until labsite sees that it has ended
MAX_WALL_SECONDS = 30 * 86_400
LIKE_RUNS = 20
OPENNESS = {
    Workspace.Status.CONFIGURING: "still being set up",
    Workspace.Status.ACTIVE: "open for launches",
    Workspace.Status.ARCHIVED: "archived",
}


@dataclass(frozen=True, slots=True)
class ResolvedInput:
    slug: str
    kind: str  # dataset, artifact
    sha256: str
    label: str
    dataset_version: DatasetVersion | None = None
    artifact: Artifact | None = None


@dataclass(frozen=True, slots=True)
class Prepared:
    """A launch with every name resolved in the open workspace and every version fixed."""

    benchmark: Benchmark
    contract: Contract
    agent: Agent
    version: AgentVersion
    pool: Pool
    inputs: tuple[ResolvedInput, ...]
    parameters: dict[str, Any]
    seed: int | None
    wall_seconds: int
    gpu_ms: int
    api_micros: int
    frozen: dict[str, Any]

    @property
    def content_hash(self) -> str:
        """SHA-256 of everything an approver agrees to."""
        return digest(self.frozen)


@dataclass(frozen=True, slots=True)
class Estimate:
    """The answer before a launch. `reserved_gpu_ms` is the upper bound; `median_gpu_ms` what like runs have really used."""

    verdict: Verdict
    prepared: Prepared
    reserved_gpu_ms: int
    wall_seconds: int
    median_gpu_ms: int | None
    like_runs: int
    cost_micros: int
    currency: str

    @property
    def pool(self) -> Pool:
        return self.prepared.pool

    @property
    def agent_version(self) -> AgentVersion:
        return self.prepared.version

    @property
    def contract(self) -> Contract:
        return self.prepared.contract


def estimate(actor: Actor, request: LaunchRequest) -> Estimate:
    """Look without locks and without leaving a trace. Raises NotFound for names that are not here, Refusal for input that cannot be."""
    prepared = prepare(request)
    spent = list(
        Run.objects.filter(agent_version=prepared.version, benchmark=prepared.benchmark, status=RunStatus.SUCCEEDED)
        .order_by("-created_at")
        .values_list("spent_gpu_ms", flat=True)[:LIKE_RUNS]
    )
    return Estimate(
        verdict=decide(collect_facts(prepared)),
        prepared=prepared,
        reserved_gpu_ms=prepared.gpu_ms,
        wall_seconds=prepared.wall_seconds,
        median_gpu_ms=int(median(spent)) if spent else None,
        like_runs=len(spent),
        cost_micros=cost_micros(prepared.gpu_ms, prepared.pool.price_micros_per_gpu_hour),
        currency=prepared.pool.currency,
    )


def cost_micros(gpu_ms: int, price_micros_per_gpu_hour: int) -> int:
    """Price of GPU time, rounded up to the micro-unit."""
    return -(-gpu_ms * price_micros_per_gpu_hour // 3_600_000)


def prepare(request: LaunchRequest) -> Prepared:
    """Resolve every name through the open workspace and fix every version."""
    benchmark = Benchmark.objects.find(request.benchmark)
    contract = Contract.objects.filter(benchmark=benchmark).order_by("-version").first()
    if contract is None:
        raise Refusal(f"{benchmark.name} has no contract yet; publish one before runs are measured by it.", field="benchmark_id")
    agent = Agent.objects.find(request.agent)
    versions = AgentVersion.objects.filter(agent=agent).order_by("-number")
    version = versions.filter(number=request.agent_version).first() if request.agent_version else versions.first()
    if version is None:
        raise Refusal(f"{agent.name} has no {'such version' if request.agent_version else 'version yet; publish one'}.", field="agent_id")
    pool = Pool.objects.find(request.pool) if request.pool else Pool.objects.filter(is_default=True).first()
    if pool is None:
        raise Refusal("Name a pool; this workspace has no default pool.", field="compute_pool_id")
    inputs = (*map(_dataset_input, request.datasets), *map(_artifact_input, request.artifacts))
    slugs = [entry.slug for entry in inputs]
    twice = next((slug for slug in slugs if slugs.count(slug) > 1), None)
    if twice:
        raise Refusal(f"{twice} is named twice among the inputs.", field="dataset_ids")
    parameters = checked_parameters(request.parameters, version)
    wall_seconds, gpu_ms = _size(request, version, pool)
    frozen = freeze(
        benchmark=benchmark, contract=contract, agent=agent, version=version, pool=pool, inputs=inputs, parameters=parameters,
        seed=request.seed, wall_seconds=wall_seconds, gpu_ms=gpu_ms, api_micros=request.api_micros,
    )  # fmt: skip
    return Prepared(
        benchmark=benchmark, contract=contract, agent=agent, version=version, pool=pool, inputs=inputs, parameters=parameters,
        seed=request.seed, wall_seconds=wall_seconds, gpu_ms=gpu_ms, api_micros=request.api_micros, frozen=frozen,
    )  # fmt: skip


def freeze(
    *,
    benchmark: Benchmark,
    contract: Contract,
    agent: Agent,
    version: AgentVersion,
    pool: Pool,
    inputs: tuple[ResolvedInput, ...],
    parameters: dict[str, Any],
    seed: int | None,
    wall_seconds: int,
    gpu_ms: int,
    api_micros: int,
) -> dict[str, Any]:
    """What a run is frozen as when it is asked for (decision 12), and what an approval is bound to."""
    return {
        "benchmark": {"id": benchmark.pk.hex, "slug": benchmark.slug, "contract": contract.version, "contract_hash": contract.content_hash},
        "agent": {"id": agent.pk.hex, "slug": agent.slug, "version": version.number, "content_hash": version.content_hash},
        "pool": {
            "id": pool.pk.hex,
            "slug": pool.slug,
            "isolation": pool.isolation,
            "milli_gpu_per_slot": pool.milli_gpu_per_slot,
            "price_micros_per_gpu_hour": pool.price_micros_per_gpu_hour,
            "currency": pool.currency,
        },
        "inputs": [{"slug": entry.slug, "kind": entry.kind, "sha256": entry.sha256, "label": entry.label} for entry in inputs],
        "parameters": parameters,
        "seed": seed,
        "limits": {"wall_seconds": wall_seconds, "gpu_ms": gpu_ms, "api_micros": api_micros},
    }


def collect_facts(prepared: Prepared, event: Draft | None = None) -> Facts:
    """Everything the decision rests on, as it stands now. With a command's draft the ledger is locked: it holds until the commit."""
    workspace = Workspace.objects.get(pk=scope.current_id())
    missing = [step.missing for step in creation_steps(workspace) if not step.is_done]
    allowed = list(prepared.version.allowed_pools.values_list("pool__slug", flat=True))
    engine = prepared.pool.engine
    holdouts = [entry for entry in prepared.inputs if entry.dataset_version and entry.dataset_version.role == DatasetVersion.Role.HOLDOUT]
    bare = prepared.pool.isolation == Pool.Isolation.NONE
    accepted = prepared.contract.accepts_no_isolation_reason
    guarded = bool(holdouts or prepared.contract.holdout_id)
    rules = (
        Rule(
            "Workspace",
            workspace.status == Workspace.Status.ACTIVE,
            f"{workspace.name} is {OPENNESS[Workspace.Status(workspace.status)]}.",
            (" ".join(missing) or "Open it for launches on its set-up page.")
            if workspace.status == Workspace.Status.CONFIGURING
            else "Restore it before launching.",
        ),  # fmt: skip
        Rule(
            "Agent may use the pool",
            not allowed or prepared.pool.slug in allowed,
            f"{prepared.agent.name} version {prepared.version.number} may run on {', '.join(allowed) or 'every pool'}.",
            f"Choose {' or '.join(allowed)}, or publish a version that may run on {prepared.pool.slug}.",
        ),
        Rule(
            "Pool takes work",
            prepared.pool.is_accepting and engine.is_accepting,
            f"{prepared.pool.slug} takes {'new work' if prepared.pool.is_accepting and engine.is_accepting else 'no new work'}.",
            "Choose another pool, or ask an operator to open it.",
        ),
        Rule(
            "Holdout stays apart",
            not (guarded and bare) or bool(accepted),
            f"{prepared.pool.slug} gives {prepared.pool.get_isolation_display()}"
            + (f"; an owner accepted that: {accepted}" if guarded and bare and accepted else "")
            + ("; this benchmark has a holdout." if guarded else "."),
            "Choose a pool with isolation, or let an owner accept it in the contract with a reason.",
        ),
        Rule(
            "Holdout is not trained on",
            not (holdouts and prepared.version.kind == "train"),
            f"An agent of kind {prepared.version.kind} reads {', '.join(entry.label for entry in holdouts) or 'no holdout'}.",
            "Leave the holdout out, or score with an agent of kind evaluate.",
        ),
        Rule(
            "Slots",
            prepared.version.slots <= prepared.pool.slots,
            f"The agent wants {prepared.version.slots} of {prepared.pool.slots} slots.",
            "Choose a larger pool.",
        ),
    )
    return Facts(rules=rules, limits=tuple(_limits(prepared, event)))


def _limits(prepared: Prepared, event: Draft | None) -> list[LimitFacts]:
    asked = {Unit.GPU_MS: prepared.gpu_ms, Unit.API_MICROS: prepared.api_micros, Unit.STORAGE_BYTES: 0, Unit.RUNS: 1}
    running = Run.objects.filter(status__in=sorted(ACTIVE)).count()
    return [_limit_facts(standing, asked[Unit(standing.unit)]) for standing in standings(event, now=timezone.now(), runs_at_once=running)]


def _limit_facts(standing: Standing, asked: int) -> LimitFacts:
    return LimitFacts(
        name=standing.name, unit=standing.unit, window=standing.window, amount=standing.amount, mode=standing.mode, used=standing.used,
        reserved=standing.reserved, asked=asked, until=standing.until,
    )  # fmt: skip


def _dataset_input(text: str) -> ResolvedInput:
    """A dataset's newest version, `<dataset>@<number>`, or a version by its own id."""
    name, _, number = text.partition("@")
    try:
        dataset = Dataset.objects.find(name)
    except NotFound:
        version = DatasetVersion.objects.find(name, "dataset") if not number else None
        if version is None:
            raise
        dataset = version.dataset
    else:
        rows = DatasetVersion.objects.filter(dataset=dataset).order_by("-number")
        if number and not (number.isascii() and number.isdigit() and len(number) < 9):
            raise NotFound("dataset version")
        version = rows.filter(number=int(number)).first() if number else rows.first()
        if version is None and number:
            raise NotFound("dataset version")
    if version is None:
        raise Refusal(f"{dataset.name} has no version yet; upload one.", field="dataset_ids")
    return ResolvedInput(
        slug=dataset.slug, kind="dataset", sha256=version.content_hash, label=f"{dataset.slug}@{version.number}", dataset_version=version
    )


def _artifact_input(text: str) -> ResolvedInput:
    artifact = Artifact.objects.find(text, "blob", "run")
    slug = "".join(character if character.isascii() and character.isalnum() else "-" for character in artifact.name.lower()).strip("-")[:64]
    return ResolvedInput(
        slug=slug or artifact.pk.hex,
        kind="artifact",
        sha256=artifact.blob.sha256,
        label=f"{artifact.name} of {artifact.run.name}",
        artifact=artifact,
    )


def _size(request: LaunchRequest, version: AgentVersion, pool: Pool) -> tuple[int, int]:
    """Wall limit in seconds and reservation in GPU ms. A budget sets the wall limit: the charge, with grace and poll, stays within it."""
    rate = version.slots * pool.milli_gpu_per_slot  # thousandths of a GPU
    margin = GRACE_SECONDS + POLL_SECONDS
    if request.gpu_ms is None or rate == 0:
        return version.wall_seconds, (version.wall_seconds + margin) * rate
    wall_seconds = min(request.gpu_ms // rate - margin, MAX_WALL_SECONDS)
    if wall_seconds < 1:
        least = f"{(margin + 1) * rate / 3_600_000:.4f}"
        raise Refusal(
            f"{request.gpu_ms / 3_600_000:.4f} GPU-hours end before the run could: {version.slots} slots for one second and "
            f"{margin} seconds to end need {least}. Ask for at least that.",
            field="budget",
        )
    return wall_seconds, min(request.gpu_ms, (wall_seconds + margin) * rate)


__all__ = ["Estimate", "Prepared", "collect_facts", "cost_micros", "estimate", "prepare"]
