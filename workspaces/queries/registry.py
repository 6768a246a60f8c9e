"""What is registered: benchmarks with their newest contract, datasets and agents with their newest version; and one of each, whole."""

import json
import shlex
import uuid
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Q, QuerySet, Sum
from django.utils import timezone

from workspaces import ids, kept_query, scope, store
from workspaces.agent_inputs import Need, needs_from
from workspaces.audit import Refusal
from workspaces.models import (
    Agent,
    AgentFile,
    AgentPool,
    AgentVersion,
    Benchmark,
    Blob,
    Contract,
    Dataset,
    DatasetFile,
    DatasetPiece,
    DatasetVersion,
    NotFound,
)
from workspaces.queries.expected_growth import Expected, expected_of
from workspaces.queries.paging import Page, newest_first

CONTRACT_ROWS = ("holdout__dataset", "train__dataset", "validation__dataset", "evaluator__agent")  # that a contract names
AWAY = "The store of this workspace does not answer at the moment. Ask again in a minute."


@dataclass(frozen=True, slots=True)
class BenchmarkRow:
    benchmark: Benchmark
    contract: Contract | None  # the newest; None: declared, not yet defined


@dataclass(frozen=True, slots=True)
class DatasetRow:
    dataset: Dataset
    version: DatasetVersion | None  # the newest; None: declared, not yet defined, or it grows
    windows: int = 0  # cut off it, where it grows
    records: int = 0  # that runs have added to it, where it grows
    bytes: int = 0
    expected: Expected | None = None


@dataclass(frozen=True, slots=True)
class AgentRow:
    agent: Agent
    version: AgentVersion | None  # the newest; None: declared, not yet defined


def benchmark_rows(*, text: str = "", cursor: str = "", size: int = 50) -> Page[BenchmarkRow]:
    page = newest_first(Benchmark.objects.filter(named_like(text)), cursor=cursor, size=size)
    contracts = Contract.objects.filter(benchmark__in=page.items).select_related(*CONTRACT_ROWS)
    newest = {row.benchmark_id: row for row in contracts.order_by("benchmark_id", "-version").distinct("benchmark_id")}
    return Page(items=[BenchmarkRow(benchmark, newest.get(benchmark.pk)) for benchmark in page.items], next=page.next)


def dataset_rows(*, text: str = "", cursor: str = "", size: int = 50, folds_windows: bool = False) -> Page[DatasetRow]:
    """Newest first. With `folds_windows` a live dataset stands for the windows that were cut off it, unless a text is looked for."""
    rows = Dataset.objects.filter(named_like(text)).select_related("window_of")
    page = newest_first(rows.filter(window_of=None) if folds_windows and not text else rows, cursor=cursor, size=size)
    versions = DatasetVersion.objects.filter(dataset__in=page.items).select_related("created_by")
    newest = {row.dataset_id: row for row in versions.order_by("dataset_id", "-number").distinct("dataset_id")}
    grown = _grown([dataset for dataset in page.items if dataset.is_live])
    expected = expected_of(page.items, now=timezone.now())
    items = [DatasetRow(row, newest.get(row.pk), *grown.get(row.pk, (0, 0, 0)), expected.get(row.pk)) for row in page.items]
    return Page(items=items, next=page.next)


def _grown(live: list[Dataset]) -> dict[uuid.UUID, tuple[int, int, int]]:
    """Windows, records and bytes of each; nothing is asked where nothing grows."""
    if not live:
        return {}
    windows = dict(Dataset.objects.filter(window_of__in=live).values_list("window_of").annotate(Count("pk")))
    pieces = DatasetPiece.objects.filter(dataset__in=live).values_list("dataset").annotate(Sum("records"), Sum("blob__bytes"))
    sums = {dataset: (records, size) for dataset, records, size in pieces}
    return {dataset.pk: (windows.get(dataset.pk, 0), *sums.get(dataset.pk, (0, 0))) for dataset in live}


def agent_rows(*, text: str = "", cursor: str = "", size: int = 50) -> Page[AgentRow]:
    page = newest_first(Agent.objects.filter(named_like(text)), cursor=cursor, size=size)
    versions = AgentVersion.objects.filter(agent__in=page.items)
    newest = {row.agent_id: row for row in versions.order_by("agent_id", "-number").distinct("agent_id")}
    return Page(items=[AgentRow(agent, newest.get(agent.pk)) for agent in page.items], next=page.next)


def named_like(text: str) -> Q:
    """Rows with the text in their name or slug; all of them where there is none."""
    return Q(name__icontains=text[:200]) | Q(slug__icontains=text[:200]) if text else Q()


def current_contract(benchmark_id: uuid.UUID) -> Contract | None:
    """The version that holds now: scores are measured by it, and ranked under it. None: declared, not yet defined."""
    return next(iter(kept_query.ask_together([contract_question(benchmark_id)])[0]), None)


def contract_question(benchmark_id: uuid.UUID, version: int | None = None) -> kept_query.Question:
    """What `current_contract` asks, or for the version with this number, for one who asks for more in the same round trip."""
    numbered: dict[str, Any] = {} if version is None else {"version": version}
    return kept_query.question(Contract, benchmark=benchmark_id, related=CONTRACT_ROWS, order_by=("-version",), limit=1, **numbered)


def find_contract(benchmark: Benchmark, version: int) -> Contract:
    """The version of a benchmark's contract with this number. Raises NotFound."""
    found = benchmark.contracts.filter(version=version).select_related(*CONTRACT_ROWS).first()
    if found is None:
        raise NotFound("contract")
    return found


def contracts_of(benchmark: Benchmark) -> list[Contract]:
    """Every version of the contract, newest first."""
    return kept_query.rows(Contract, benchmark=benchmark, related=CONTRACT_ROWS, order_by=("-version",))


@dataclass(frozen=True, slots=True)
class DatasetVersionRow:
    version: DatasetVersion
    file_count: int


def versions_of(dataset: Dataset) -> list[DatasetVersionRow]:
    """Every version with its number of files, newest first."""
    return [DatasetVersionRow(version, version.file_count) for version in kept_query.ask(_frozen_of, dataset=dataset.pk)]


def _frozen_of(dataset: Any) -> "QuerySet[DatasetVersion]":
    versions = DatasetVersion.objects.filter(dataset=dataset).select_related("created_by")
    return versions.annotate(file_count=Count("files")).order_by("-number")


def files_of(version: DatasetVersion) -> list[DatasetFile]:
    return kept_query.ask(_files_in, version=version.pk)


def _files_in(version: Any) -> "QuerySet[DatasetFile]":
    return DatasetFile.objects.filter(version=version).select_related("blob").order_by("path")


def find_version(dataset: Dataset, text: str) -> DatasetVersion:
    """A version of the dataset by its number (`3`), as canonical id or UUID."""
    if text.isdecimal() and len(text) < 10:
        version = dataset.versions.filter(number=int(text)).select_related("created_by").first()
        if version is None:
            raise NotFound("dataset version")
        return version
    version = DatasetVersion.objects.find(text, "created_by")
    if version.dataset_id != dataset.pk:
        raise NotFound("dataset version")
    return version


def newest_version(dataset: Dataset) -> DatasetVersion | None:
    """With who imported it; None while there is none."""
    return dataset.versions.select_related("created_by").order_by("-number").first()


def find_agent_version(agent: Agent, text: str) -> AgentVersion:
    """A version of the agent by its number (`3`), as canonical id or UUID."""
    if text.isdecimal() and len(text) < 10:
        version = agent.versions.filter(number=int(text)).first()
    else:
        version = AgentVersion.objects.find(text)
    if version is None or version.agent_id != agent.pk:
        raise NotFound("agent version")
    return version


def find_agent_file(version: AgentVersion, path: str) -> AgentFile:
    file = version.files.select_related("blob").filter(path=path).first()
    if file is None:
        raise NotFound("file")
    return file


def find_file(version: DatasetVersion, path: str) -> DatasetFile:
    file = version.files.select_related("blob").filter(path=path).first()
    if file is None:
        raise NotFound("file")
    return file


def find_dataset_version(text: str) -> DatasetVersion:
    """A version written as `<dataset>@<number>`, as `<dataset>` (its newest), or as its own id."""
    name, at, number = text.partition("@")
    if not at:
        pk, _ = ids.spellings(DatasetVersion.prefix, text)
        frozen = DatasetVersion.objects.select_related("dataset").filter(pk=pk).first() if pk else None
        if frozen is not None:
            return frozen
    dataset = Dataset.objects.find(name)
    version = find_version(dataset, number) if at else dataset.versions.order_by("-number").first()
    if version is None:
        raise NotFound("dataset version")
    return version


def find_version_of_agent(text: str) -> AgentVersion:
    """A version written as `<agent>@<number>`, as `<agent>` (its newest), or as its own id."""
    name, at, number = text.partition("@")
    if not at:
        pk, _ = ids.spellings(AgentVersion.prefix, text)
        found = AgentVersion.objects.select_related("agent").filter(pk=pk).first() if pk else None
        if found is not None:
            return found
    agent = Agent.objects.find(name)
    if at:
        return find_agent_version(agent, number)
    newest = agent.versions.select_related("agent").order_by("-number").first()
    if newest is None:
        raise NotFound("agent version")
    return newest


@dataclass(frozen=True, slots=True)
class ContractChoices:
    """Versions that a contract may name, the newest of each kind first."""

    holdout: list[DatasetVersion]
    train: list[DatasetVersion]
    validation: list[DatasetVersion]
    evaluator: list[AgentVersion]


def contract_choices(limit: int = 200) -> ContractChoices:
    role = DatasetVersion.Role
    versions = DatasetVersion.objects.select_related("dataset").order_by("-created_at", "-pk")
    holdout = list(versions.filter(role=role.HOLDOUT)[:limit])
    others = list(versions.exclude(role=role.HOLDOUT)[: 2 * limit])  # many windows would leave no room for the holdouts
    train, validation = ([version for version in others if version.role in (one, role.ANY)] for one in (role.TRAIN, role.VALIDATION))
    evaluators = AgentVersion.objects.filter(kind="evaluate").select_related("agent").order_by("-created_at", "-pk")[:limit]
    return ContractChoices(holdout, train, validation, list(evaluators))


@dataclass(frozen=True, slots=True)
class AgentVersionRow:
    version: AgentVersion
    pools: list[str]
    files: list[AgentFile]

    @property
    def needs(self) -> tuple[Need, ...]:
        """What a run must be given, or may be."""
        return needs_from(self.version.inputs)

    @property
    def command(self) -> str:
        """The arguments as a shell would take them, for reading only."""
        return shlex.join(self.version.argv)

    @property
    def schema(self) -> str:
        """The parameter schema as people read it; empty where a run takes no parameters."""
        schema = self.version.parameter_schema
        return json.dumps(schema, indent=2, ensure_ascii=False) if schema else ""


def agent_versions_of(agent: Agent) -> list[AgentVersionRow]:
    """Every version with its pools and code, newest first."""
    pools: dict[uuid.UUID, list[str]] = defaultdict(list)
    files: dict[uuid.UUID, list[AgentFile]] = defaultdict(list)
    for version_id, slug in kept_query.ask(_pools_of, agent=agent.pk):
        pools[version_id].append(slug)
    for file in kept_query.ask(_files_of, agent=agent.pk):
        files[file.version_id].append(file)
    versions = kept_query.ask(_versions_of, agent=agent.pk)
    return [AgentVersionRow(row, sorted(pools[row.pk]), sorted(files[row.pk], key=_path)) for row in versions]


def _versions_of(agent: Any) -> "QuerySet[AgentVersion]":
    return AgentVersion.objects.filter(agent=agent).select_related("created_by").order_by("-number")


def _pools_of(agent: Any) -> "QuerySet[Any, Any]":
    return AgentPool.objects.filter(version__agent=agent).values_list("version_id", "pool__slug")


def _files_of(agent: Any) -> "QuerySet[AgentFile]":
    return AgentFile.objects.filter(version__agent=agent).select_related("blob")


def agent_version_row(version: AgentVersion) -> AgentVersionRow:
    """One version with its pools and code."""
    pools = sorted(allowed.pool.slug for allowed in version.allowed_pools.all())
    return AgentVersionRow(version, pools, sorted(version.files.all(), key=_path))


def _path(file: AgentFile) -> str:
    return file.path


def beginning_of(blob: Blob, most_bytes: int) -> tuple[str | None, bool]:
    """The beginning of a stored file as text, None where it is no UTF-8 text or holds NUL; and whether the file goes on. Raises NotFound where
    the store has lost it, or has other bytes, and Refusal where it does not answer."""
    try:
        end = None if blob.bytes <= most_bytes else most_bytes
        content = b"".join(store.open(blob.region, scope.current_id(), blob.sha256, start=0, end=end))
    except (store.StoreMissing, store.StoreDamaged) as error:
        raise NotFound("file") from error
    except store.StoreAway as error:
        raise Refusal(AWAY) from error
    is_cut = blob.bytes > len(content)
    if b"\x00" in content:
        return None, is_cut
    for back in range(4 if is_cut else 1):  # what is cut may end within a character
        try:
            return content[: len(content) - back].decode(), is_cut
        except UnicodeDecodeError:
            continue
    return None, is_cut


def stored_content(blob: Blob, *, start: int = 0, end: int | None = None) -> Iterator[bytes]:
    """The bytes of a stored file of the open workspace, or those from `start` up to `end` (not included). Raises NotFound where the store has lost
    it; where the whole file is read and is damaged, StoreDamaged in place of its last piece. Once it is returned it needs no scope."""
    try:
        return store.open(blob.region, scope.current_id(), blob.sha256, start=start, end=end)
    except store.StoreMissing as error:
        raise NotFound("file") from error
    except store.StoreAway as error:
        raise Refusal(AWAY) from error
