"""What a run is frozen as (decision 12): a launch with every version fixed, and the same read back from a run's rows."""

from dataclasses import dataclass
from typing import Any

from runs.models import Artifact, Run
from runs.queries.run_input import inputs_of
from workspaces.canonical import digest
from workspaces.models import Agent, AgentVersion, Benchmark, Contract, DatasetVersion, Pool


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

    @property
    def frozen(self) -> dict[str, Any]:
        """What a run keeps of it, and what an approval is bound to."""
        benchmark, contract, agent, version, pool = self.benchmark, self.contract, self.agent, self.version, self.pool
        return {
            "benchmark": {
                "id": benchmark.pk.hex,
                "slug": benchmark.slug,
                "contract": contract.version,
                "contract_hash": contract.content_hash,
            },
            "agent": {"id": agent.pk.hex, "slug": agent.slug, "version": version.number, "content_hash": version.content_hash},
            "pool": {
                "id": pool.pk.hex,
                "slug": pool.slug,
                "isolation": pool.isolation,
                "milli_gpu_per_slot": pool.milli_gpu_per_slot,
                "price_micros_per_gpu_hour": pool.price_micros_per_gpu_hour,
                "currency": pool.currency,
            },
            "inputs": [{"slug": entry.slug, "kind": entry.kind, "sha256": entry.sha256, "label": entry.label} for entry in self.inputs],
            "parameters": self.parameters,
            "seed": self.seed,
            "limits": {"wall_seconds": self.wall_seconds, "gpu_ms": self.gpu_ms, "api_micros": self.api_micros},
        }

    @property
    def content_hash(self) -> str:
        """SHA-256 of everything an approver agrees to."""
        return digest(self.frozen)


def thaw(run: Run) -> Prepared:
    """The launch as prepared, with its content computed anew from today's rows: if any of them changed, so does `content_hash`."""
    limits = run.frozen["limits"]
    return Prepared(
        benchmark=Benchmark.objects.get(pk=run.benchmark_id),
        contract=Contract.objects.get(pk=run.contract_id),
        agent=Agent.objects.get(pk=run.agent_id),
        version=AgentVersion.objects.get(pk=run.agent_version_id),
        pool=Pool.objects.select_related("engine").get(pk=run.pool_id),
        inputs=tuple(_inputs(run)),
        parameters=run.parameters,
        seed=run.seed,
        wall_seconds=run.wall_seconds,
        gpu_ms=limits["gpu_ms"],
        api_micros=limits["api_micros"],
    )


def _inputs(run: Run) -> list[ResolvedInput]:
    labels = {entry["slug"]: str(entry["label"]) for entry in reversed(run.frozen["inputs"])}
    found = []
    for entry in inputs_of(run, "dataset_version__dataset", "artifact__blob", "artifact__run"):
        sha256 = entry.sha256
        if entry.dataset_version is not None:
            sha256 = entry.dataset_version.content_hash
        elif entry.artifact is not None:
            sha256 = entry.artifact.blob.sha256
        label = labels.get(entry.slug, entry.slug)
        found.append(ResolvedInput(entry.slug, entry.kind, sha256, label, entry.dataset_version, entry.artifact))
    return found
