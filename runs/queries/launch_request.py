"""A launch request with every name looked up in the open workspace and every version fixed; nothing is decided here."""

from dataclasses import replace
from typing import Any

from runs.launch import LaunchRequest
from runs.models import Artifact
from runs.queries.frozen import Prepared, ResolvedInput
from runs.queries.parameters import checked_parameters
from runs.reservation import TooLittle, reservation
from workspaces import kept_query
from workspaces.audit import Refusal
from workspaces.models import Agent, AgentVersion, Benchmark, Dataset, DatasetVersion, NotFound, Pool
from workspaces.queries.registry import contract_question
from workspaces.text import unreadable


def prepare(request: LaunchRequest, *, is_draft: bool = False) -> Prepared:
    """Raises NotFound for names that are not here, Refusal with its field for what no run could be made of. A draft's parameters are not checked."""
    if strange := unreadable(request.name):
        raise Refusal(strange, field="name")
    names = [text.partition("@")[0] for text in request.datasets]
    default_pool = kept_query.question(Pool, is_default=True, related=("engine",), limit=1)
    benchmarks, agents, pools, *sets = _together(
        Benchmark.objects.finding(request.benchmark),
        Agent.objects.finding(request.agent),
        Pool.objects.finding(request.pool, "engine") if request.pool else [default_pool],
        *map(Dataset.objects.finding, names),
    )
    benchmark, agent = Benchmark.objects.found(benchmarks), Agent.objects.found(agents)
    numbered: dict[str, Any] = {"number": request.agent_version} if request.agent_version else {}
    datasets = [next((rows[0] for rows in found if rows), None) for found in sets]
    [contracts], [versions], *dataset_versions = _together(
        [contract_question(benchmark.pk, request.contract)],
        [kept_query.question(AgentVersion, agent=agent, order_by=("-number",), limit=1, **numbered)],
        *([_version_question(dataset, text)] if dataset else [] for dataset, text in zip(datasets, request.datasets, strict=True)),
    )
    contract, version = next(iter(contracts), None), next(iter(versions), None)
    if contract is None and request.contract is not None:
        raise NotFound("contract")
    if contract is None:
        raise Refusal(f"{benchmark.name} has no contract yet; publish one before runs are measured by it.", field="benchmark_id")
    if version is None:
        raise Refusal(f"{agent.name} has no {'such version' if request.agent_version else 'version yet; publish one'}.", field="agent_id")
    pool = Pool.objects.found(pools) if request.pool or any(pools) else None
    if pool is None:
        raise Refusal("Name a pool; this workspace has no default pool.", field="compute_pool_id")
    given = zip(request.datasets, datasets, dataset_versions, strict=True)
    inputs = _placed([_dataset_input(text, dataset, found) for text, dataset, found in given], [*map(_artifact_input, request.artifacts)])
    try:
        asked = reservation(
            budget_gpu_ms=request.gpu_ms, wall_seconds=version.wall_seconds, slots=version.slots, milli_gpu_per_slot=pool.milli_gpu_per_slot
        )
    except TooLittle as fault:
        raise Refusal(str(fault), field="budget") from fault
    return Prepared(
        benchmark=benchmark,
        contract=contract,
        agent=agent,
        version=version,
        pool=pool,
        inputs=inputs,
        parameters=request.parameters if is_draft else checked_parameters(request.parameters, version),
        seed=request.seed,
        wall_seconds=asked.wall_seconds,
        gpu_ms=asked.gpu_ms,
        api_micros=request.api_micros,
    )


def _placed(datasets: list[ResolvedInput], artifacts: list[ResolvedInput]) -> tuple[ResolvedInput, ...]:
    """All of them, each with a place of its own below `inputs/`. A dataset has the one of its name, by which agents know it. An artifact has that
    of its name; where another has it already, it is numbered on, `checkpoint-npz-2`, in the order in which they were asked for."""
    twice = next((one.slug for place, one in enumerate(datasets) if one.slug in {other.slug for other in datasets[:place]}), None)
    if twice:
        raise Refusal(f"{twice} is named twice among the inputs.", field="dataset_ids")
    again = next(
        (one.label for place, one in enumerate(artifacts) if one.artifact in [other.artifact for other in artifacts[:place]]), None
    )
    if again:
        raise Refusal(f"{again} is named twice among the inputs.", field="artifact_ids")
    given = {one.slug for one in artifacts}
    taken: dict[str, ResolvedInput] = {one.slug: one for one in datasets}
    for one in artifacts:
        slug, number = one.slug, 1
        while slug in taken or (number > 1 and slug in given):  # who has that very name keeps it
            number += 1
            end = f"-{number}"
            slug = one.slug[: 64 - len(end)] + end
        taken[slug] = replace(one, slug=slug)
    return tuple(taken.values())


def _together(*asked: list[kept_query.Question]) -> list[list[list[Any]]]:
    """The answers to each list of questions, all of them asked in one round trip."""
    answers = iter(kept_query.ask_together([question for questions in asked for question in questions]))
    return [[next(answers) for _ in questions] for questions in asked]


def _version_question(dataset: Dataset, text: str) -> kept_query.Question:
    """A dataset's newest version, or of `<dataset>@<number>` that one."""
    _, _, number = text.partition("@")
    if number and not (number.isascii() and number.isdigit() and len(number) < 9):
        raise NotFound("dataset version")
    numbered: dict[str, Any] = {"number": int(number)} if number else {}
    return kept_query.question(DatasetVersion, dataset=dataset, order_by=("-number",), limit=1, **numbered)


def _dataset_input(text: str, dataset: Dataset | None, found: list[list[Any]]) -> ResolvedInput:
    """A version of the dataset that `text` names, as it was found; or where it names none, the version that it names by its own id."""
    name, _, number = text.partition("@")
    version: DatasetVersion | None
    if dataset is None:
        if number:
            raise NotFound("dataset")
        version = DatasetVersion.objects.find(name, "dataset")
        dataset = version.dataset
    else:
        version = next((rows[0] for rows in found if rows), None)
        if version is None and number:
            raise NotFound("dataset version")
    if version is None:
        raise Refusal(f"{dataset.name} has no version yet; upload one.", field="dataset_ids")
    return ResolvedInput(
        slug=dataset.slug, kind="dataset", sha256=version.content_hash, label=f"{dataset.slug}@{version.number}", dataset_version=version
    )


def _artifact_input(text: str) -> ResolvedInput:
    artifact = Artifact.objects.find(text, "blob", "run")
    if artifact.going:
        raise Refusal(f"{artifact.name or artifact.path} of {artifact.run.name} {artifact.going}.", field="artifact_ids")
    slug = "".join(character if character.isascii() and character.isalnum() else "-" for character in artifact.name.lower()).strip("-")[:64]
    return ResolvedInput(
        slug=slug or artifact.pk.hex,
        kind="artifact",
        sha256=artifact.blob.sha256,
        label=f"{artifact.name} of {artifact.run.name}",
        artifact=artifact,
    )
