"""What can be launched here: the names that the launch page offers."""

import uuid
from dataclasses import dataclass

from runs.models import Artifact
from workspaces.models import Agent, AgentVersion, Benchmark, Contract, DatasetVersion, Pool

OFFERED = 500  # of each kind; what is not offered can still be named in the address


@dataclass(frozen=True, slots=True)
class LaunchChoices:
    benchmarks: list[tuple[str, str]]
    agents: list[tuple[str, str]]
    pools: list[tuple[str, str]]
    datasets: list[tuple[str, str]]
    default_pool: str


def launch_choices() -> LaunchChoices:
    """Benchmarks with a contract, agents with a version, pools, and datasets by their newest versions."""
    pools = list(Pool.objects.select_related("engine").order_by("slug"))
    newest: dict[str, list[str]] = {}
    for slug, name, number, role in (
        DatasetVersion.objects.select_related("dataset")
        .order_by("dataset__slug", "-number")
        .values_list("dataset__slug", "dataset__name", "number", "role")[: OFFERED * 4]
    ):
        newest.setdefault(slug, [name, str(number), role])
    return LaunchChoices(
        benchmarks=list(
            Benchmark.objects.filter(pk__in=Contract.objects.values("benchmark")).order_by("name").values_list("slug", "name")[:OFFERED]
        ),
        agents=list(
            Agent.objects.filter(pk__in=AgentVersion.objects.values("agent")).order_by("name").values_list("slug", "name")[:OFFERED]
        ),
        pools=[
            (pool.slug, pool.slug if pool.is_accepting and pool.engine.is_accepting else f"{pool.slug} (takes no new work)")
            for pool in pools
        ],
        datasets=[(slug, f"{name} · version {number}, {role}") for slug, (name, number, role) in list(newest.items())[:OFFERED]],
        default_pool=next((pool.slug for pool in pools if pool.is_default), ""),
    )


def versions_of(agent: str) -> list[AgentVersion]:
    """Versions of the agent with this slug, newest first; none for a name that is not here."""
    return list(AgentVersion.objects.filter(agent__slug=agent).order_by("-number")[:OFFERED])


def dataset_label(name: str) -> str | None:
    """A choice for a dataset that was named with its version, such as `weak-labels@3`."""
    slug, _, number = name.partition("@")
    if not (number.isascii() and number.isdigit() and len(number) < 9):
        return None
    found = DatasetVersion.objects.filter(dataset__slug=slug, number=int(number)).select_related("dataset").first()
    return f"{found.dataset.name} · version {found.number}, {found.role}" if found else None


def artifact_label(key: uuid.UUID) -> str | None:
    found = Artifact.objects.filter(pk=key).select_related("run").first()
    return f"{found.name} of {found.run.name}" if found else None
