"""A run's frozen request, read back from the rows it rests on: what an approval is bound to, and what a pool is given."""

from runs.models import Run
from runs.queries.estimate import Prepared, ResolvedInput, freeze
from workspaces.models import Agent, AgentVersion, Benchmark, Contract, Pool


def thaw(run: Run) -> Prepared:
    """The launch as prepared, with its content computed anew from today's rows: if any of them changed, so does `content_hash`."""
    benchmark = Benchmark.objects.get(pk=run.benchmark_id)
    contract = Contract.objects.get(pk=run.contract_id)
    agent = Agent.objects.get(pk=run.agent_id)
    version = AgentVersion.objects.get(pk=run.agent_version_id)
    pool = Pool.objects.select_related("engine").get(pk=run.pool_id)
    inputs = tuple(
        ResolvedInput(
            slug=entry.slug,
            kind=entry.kind,
            sha256=entry.dataset_version.content_hash
            if entry.dataset_version
            else entry.artifact.blob.sha256
            if entry.artifact
            else entry.sha256,
            label=_label(run, entry.slug),
            dataset_version=entry.dataset_version,
            artifact=entry.artifact,
        )
        for entry in run.inputs.select_related("dataset_version__dataset", "artifact__blob", "artifact__run").order_by("created_at", "pk")
    )
    limits = run.frozen["limits"]
    frozen = freeze(
        benchmark=benchmark, contract=contract, agent=agent, version=version, pool=pool, inputs=inputs, parameters=run.parameters,
        seed=run.seed, wall_seconds=run.wall_seconds, gpu_ms=limits["gpu_ms"], api_micros=limits["api_micros"],
    )  # fmt: skip
    return Prepared(
        benchmark=benchmark, contract=contract, agent=agent, version=version, pool=pool, inputs=inputs, parameters=run.parameters, seed=run.seed,
        wall_seconds=run.wall_seconds, gpu_ms=limits["gpu_ms"], api_micros=limits["api_micros"], frozen=frozen,
    )  # fmt: skip


def _label(run: Run, slug: str) -> str:
    return next((str(entry["label"]) for entry in run.frozen["inputs"] if entry["slug"] == slug), slug)
