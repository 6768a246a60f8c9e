"""What can be launched here: the names that the launch page offers."""

from dataclasses import dataclass

from django.db.models import QuerySet

from runs.models import Artifact
from runs.queries.artifact import RECORDS
from workspaces import ids
from workspaces.models import Agent, AgentVersion, Benchmark, Contract, Dataset, DatasetVersion, Pool
from workspaces.queries.registry import named_like
from workspaces.text import is_storable

OFFERED = 500  # of each kind; what is not offered can still be looked for, and named in the address
BESIDE = 50


@dataclass(frozen=True, slots=True)
class Pick:
    """One input that a run may be given, as a row of its own: what it is, from where, in which version, for what, and its size in bytes."""

    value: str
    name: str
    source: str
    version: str
    role: str
    bytes: int

    @property
    def label(self) -> str:
        return " · ".join(part for part in (self.name, self.source, self.version, self.role) if part)


@dataclass(frozen=True, slots=True)
class LaunchChoices:
    benchmarks: list[tuple[str, str]]
    agents: list[tuple[str, str]]
    pools: list[tuple[str, str]]
    datasets: list[Pick]
    default_pool: str


def launch_choices(find: str = "") -> LaunchChoices:
    """Benchmarks with a contract, agents with a version, pools, and datasets by their newest versions, windows last; of datasets those with
    `find` in their name or slug. `name@` finds every version, `name@3` one."""
    pools = list(Pool.objects.select_related("engine").order_by("slug"))
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
        datasets=_datasets(find.strip()),
        default_pool=next((pool.slug for pool in pools if pool.is_default), ""),
    )


def _datasets(find: str) -> list[Pick]:
    if not is_storable(find):
        return []
    text, at, number = find.rpartition("@") if "@" in find else (find, "", "")
    rows = DatasetVersion.objects.select_related("dataset").order_by("dataset__slug", "-number")
    rows = rows.filter(dataset__in=Dataset.objects.filter(named_like(text))) if text else rows
    if not at:
        return [_dataset_pick(version, version.dataset.slug) for version in sorted(rows.distinct("dataset__slug")[:OFFERED], key=_place)]
    rows = rows.filter(number=int(number)) if _is_number(number) else rows
    return [_dataset_pick(version, f"{version.dataset.slug}@{version.number}") for version in sorted(rows[:OFFERED], key=_place)]


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 9


def versions_of(agent: str) -> list[AgentVersion]:
    """Versions of the agent with this slug, newest first; none for a name that is not here."""
    if "\x00" in agent:
        return []
    return list(AgentVersion.objects.filter(agent__slug=agent).order_by("-number")[:OFFERED])


def dataset_pick(name: str) -> Pick | None:
    """A dataset that was named, with its version as in `weak-labels@3` or by its newest."""
    slug, at, number = name.partition("@")
    if not is_storable(name) or (at and not _is_number(number)):
        return None
    rows = DatasetVersion.objects.filter(dataset__slug=slug).select_related("dataset").order_by("-number")
    found = (rows.filter(number=int(number)) if at else rows).first()
    return _dataset_pick(found, name) if found else None


def artifact_picks(names: list[str]) -> list[Pick]:
    """Artifacts that were named by their UUIDs, and what else their runs were run for; those that are not here are left out."""
    keys = {key: name for name in names for key in [ids.as_uuid(name)] if key is not None}
    if not keys:
        return []
    named = list(_artifacts().filter(pk__in=keys))
    beside = _artifacts().filter(run__in={artifact.run_id for artifact in named}).exclude(kind__in=RECORDS).exclude(pk__in=keys)
    picks = [_artifact_pick(artifact, keys[artifact.pk]) for artifact in named]
    return picks + [_artifact_pick(artifact, artifact.pk.hex) for artifact in beside.order_by("run", "path")[:BESIDE]]


def _artifacts() -> "QuerySet[Artifact]":
    return Artifact.objects.filter(deleted_at=None).select_related("run", "blob")


def _dataset_pick(version: DatasetVersion, value: str) -> Pick:
    dataset = version.dataset
    return Pick(value, dataset.name, dataset.slug, f"version {version.number}", version.role, version.bytes)


def _place(version: DatasetVersion) -> tuple[bool, str, int, str]:
    """Windows after what stands for itself: those of one dataset together, the newest first."""
    dataset = version.dataset
    return dataset.window_of_id is not None, str(dataset.window_of_id), -(dataset.window_number or 0), dataset.slug


def _artifact_pick(artifact: Artifact, value: str) -> Pick:
    return Pick(value, artifact.name, f"of {artifact.run.name}", "", artifact.kind, artifact.blob.bytes)
