"""Frozen copies of public benchmarks of other workspaces: made, followed when the source moves on, and told apart from one's own.

The definition travels, with the hash that it has at its source. Data does not: a holdout, like every row that a contract names, is named by the hash
of its content, and stands in the copy where a version with this content is here.
"""

import uuid
from contextlib import suppress
from datetime import datetime
from typing import Any

from workspaces import scope
from workspaces.access import Actor, Kind, Permission, rights_of
from workspaces.accounts import lock_ledger
from workspaces.audit import Denied, Draft, Refusal, command
from workspaces.canonical import digest
from workspaces.commands.benchmark import refuse_looser, refuse_withdrawn
from workspaces.commands.notification import notify, take_back
from workspaces.commands.registry import create_named, insert
from workspaces.commands.share import read_public
from workspaces.models import AgentVersion, Benchmark, Contract, DatasetVersion, NotFound, Notification
from workspaces.queries.member import people
from workspaces.queries.public_benchmark import PublicDefinition, find_public, public_definition, read_definition
from workspaces.queries.registry import current_contract
from workspaces.queries.workspace import find_workspace, is_archived
from workspaces.verbs import Verb

TEXTS = (
    "metric", "unit", "direction", "wall_seconds", "terms", "runs_per_person", "period", "metrics", "over_seeds", "tie_rule", "memory_bytes",
    "counts_all_samples",
)  # fmt: skip
INSTANTS = ("opens_at", "closes_at")


def import_benchmark(*, actor: Actor, workspace: str, benchmark: str, slug: str = "", id: uuid.UUID | None = None) -> Benchmark:  # noqa: A002  # the word of the column
    """Copy the public benchmark of another workspace into the open one. Raises NotFound where it is not public. It opens scopes, so not in a
    transaction."""
    definition = _read(actor, workspace, benchmark)
    if definition.workspace_id == scope.current_id():
        raise Refusal("This benchmark is this workspace's own.", field="benchmark")
    return _create_copy(actor=actor, definition=definition, slug=slug or definition.benchmark_slug, id=id)


def follow_source(*, actor: Actor, benchmark: Benchmark, id: uuid.UUID | None = None) -> Contract:  # noqa: A002  # the word of the column
    """Take over what the source of a frozen copy says now, as the copy's next version."""
    if not benchmark.source:
        raise Refusal(f"{benchmark.name} is no copy of another benchmark; publish a contract of its own.")
    try:
        definition = _read(actor, benchmark.source["workspace_id"], benchmark.source["benchmark_id"])
    except NotFound:
        raise Refusal(
            f"{benchmark.source['benchmark']} of {benchmark.source['workspace']} is public no more; the copy stays as it is."
        ) from None
    return _take_over(actor=actor, benchmark=benchmark, definition=definition, id=id)


def look_at_sources(actor: Actor) -> int:
    """What has become of the sources of the open workspace's copies; each change is on record. Returns how many changed. Rung while tidying."""
    changed = 0
    if is_archived():  # what an archive says stays as it was
        return changed
    for copy in Benchmark.objects.exclude(source={}).order_by("pk"):
        version, state = _now(copy)
        if (state, version) != (copy.source_state, copy.source_version):
            with suppress(Refusal):  # another look was faster
                note_source(actor=actor, benchmark=copy, state=state, version=version)
                changed += 1
    return changed


@command(Verb.BENCHMARK_SOURCE_SEEN, needs=None, by_system=True)
def note_source(event: Draft, *, actor: Actor, benchmark: Benchmark, state: str, version: int | None) -> None:
    """Keep what the source of a copy was seen to say: its newest version, or that it is public no more. Whoever may take it over is told, once for
    each version; what they are told is what the source shows to everyone. Refuses where it was seen meanwhile."""
    locked = Benchmark.objects.select_for_update(no_key=True).get(pk=benchmark.pk)
    if (locked.source_state, locked.source_version) == (state, version):
        raise Refusal("That was seen already.")
    event.change(locked, source_state=state, source_version=version)
    take_back(cause=Notification.Cause.SOURCE_MOVED, subject_id=locked.pk)
    if state == Benchmark.SourceState.CURRENT:
        return
    mine = current_contract(locked.pk)
    copied = f"The copy says what its version {mine.source_version} said." if mine is not None else ""
    notify(
        [person.user for person in people() if person.may(Permission.EDIT_REGISTRY, Kind.BENCHMARK)],
        cause=Notification.Cause.SOURCE_MOVED,
        subject_type="benchmark",
        subject_id=locked.pk,
        label=locked.name,
        words=f"It has version {version} of its contract now. {copied}"
        if state == Benchmark.SourceState.NEWER
        else "It is public no more.",
    )


@command(Verb.BENCHMARK_IMPORTED, needs=Permission.EDIT_REGISTRY, kind=Kind.BENCHMARK)
def _create_copy(event: Draft, *, actor: Actor, definition: PublicDefinition, slug: str, id: uuid.UUID | None) -> Benchmark:  # noqa: A002  # the word of the column
    _lock_ledger_for(event, definition)
    benchmark = create_named(
        event, Benchmark, actor=actor, slug=slug, name=definition.benchmark, id=id, description=definition.description,
        source=definition.source, source_state=Benchmark.SourceState.CURRENT, source_version=definition.version,
    )  # fmt: skip
    _copy(event, benchmark, definition, actor=actor, version=1)
    return benchmark


@command(Verb.CONTRACT_TAKEN_OVER, needs=Permission.EDIT_REGISTRY, kind=Kind.BENCHMARK)
def _take_over(event: Draft, *, actor: Actor, benchmark: Benchmark, definition: PublicDefinition, id: uuid.UUID | None) -> Contract:  # noqa: A002  # the word of the column
    _lock_ledger_for(event, definition)
    locked = Benchmark.objects.select_for_update(no_key=True).get(pk=benchmark.pk)
    newest = current_contract(locked.pk)
    assert newest is not None
    contract = _copy(event, locked, definition, actor=actor, version=newest.version + 1, before=newest, id=id)
    seen = {"source_state": Benchmark.SourceState.CURRENT, "source_version": definition.version}
    take_back(cause=Notification.Cause.SOURCE_MOVED, subject_id=locked.pk)
    if any(getattr(locked, name) != value for name, value in seen.items()):
        event.change(locked, **seen)
    return contract


def _lock_ledger_for(event: Draft, definition: PublicDefinition) -> None:
    """Before anything else is locked, as where a contract is published."""
    if definition.content.get("holdout"):
        lock_ledger(event)


def _copy(
    event: Draft,
    benchmark: Benchmark,
    definition: PublicDefinition,
    *,
    actor: Actor,
    version: int,
    before: Contract | None = None,
    id: uuid.UUID | None = None,  # noqa: A002  # the word of the column
) -> Contract:
    content = definition.content
    if not content:
        raise Refusal(
            f"Contract version {definition.version} of {definition.benchmark} was published before definitions could travel; its workspace"
            " publishes the next version."
        )
    if digest(content) != definition.content_hash:
        raise Refusal(f"What {definition.workspace} shows of {definition.benchmark} has not the hash that it names; nothing was copied.")
    rows = _rows_here(content)
    if (
        before is not None
        and before.content_hash == definition.content_hash
        and all(getattr(before, f"{name}_id") == (row.pk if row else None) for name, row in rows.items())
    ):
        raise Refusal(f"This is what version {before.version} of the copy says already; nothing was taken over.")
    holdout = rows["holdout"]
    assert not isinstance(holdout, AgentVersion)
    refuse_withdrawn(holdout)
    refuse_looser(before, content.get("runs_per_person"), content.get("period") or "", actor=actor)
    contract = Contract(
        benchmark=benchmark, version=version, source_version=definition.version, content=content, content_hash=definition.content_hash, **rows,
        **{name: content[name] for name in TEXTS if name in content},
        **{name: datetime.fromisoformat(content[name]) for name in INSTANTS if name in content},
    )  # fmt: skip
    if id is not None:
        contract.pk = id
    insert(event, contract)
    event.details["source"] = {**definition.source, "version": definition.version, "content_hash": definition.content_hash}
    event.details["not_here"] = sorted(name for name, row in rows.items() if row is None and content.get(name))
    return contract


def _rows_here(content: dict[str, Any]) -> dict[str, DatasetVersion | AgentVersion | None]:
    """The rows of this workspace with the content that the contract names. That an owner elsewhere accepts runs without isolation is no word
    of an owner here, and is not taken over."""
    role = DatasetVersion.Role
    found: dict[str, DatasetVersion | AgentVersion | None] = {
        name: DatasetVersion.objects.filter(content_hash=content[name], role__in=roles).order_by("created_at", "pk").first()
        if content.get(name)
        else None
        for name, roles in (
            ("holdout", (role.HOLDOUT,)),
            ("train", (role.TRAIN, role.ANY)),
            ("validation", (role.VALIDATION, role.ANY)),
        )
    }
    key = content.get("evaluator")
    found["evaluator"] = (
        AgentVersion.objects.filter(content_hash=key, kind="evaluate").order_by("created_at", "pk").first() if key else None
    )
    return found


def _read(actor: Actor, workspace: str, benchmark: str) -> PublicDefinition:
    """Through the standing public grant, which has the reading on the giver's record."""
    if not rights_of(actor, scope.current_id()).allows(Permission.EDIT_REGISTRY, Kind.BENCHMARK):
        raise Denied(Permission.EDIT_REGISTRY, Kind.BENCHMARK)
    giver = find_workspace(workspace)
    if giver is None:
        raise NotFound("benchmark")
    with read_public(actor=actor, giver=giver, benchmark_id=find_public(giver, benchmark)):
        return read_definition(giver)


def _now(copy: Benchmark) -> tuple[int | None, str]:
    """The newest version of a copy's source, and how the copy stands to it."""
    states = Benchmark.SourceState
    giver, mine = find_workspace(copy.source["workspace_id"]), current_contract(copy.pk)
    try:
        if giver is None:
            raise NotFound("workspace")
        definition = public_definition(giver, find_public(giver, copy.source["benchmark_id"]))
    except NotFound:
        return copy.source_version, states.WITHDRAWN
    is_current = mine is not None and mine.source_version == definition.version
    return definition.version, states.CURRENT if is_current else states.NEWER
