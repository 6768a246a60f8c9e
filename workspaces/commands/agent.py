"""Agents and their frozen versions: how to start, with which parameters, on which code, where and with what (contracts.md G)."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from workspaces.access import Actor, Kind, Permission
from workspaces.agent_inputs import Need
from workspaces.agent_spec import refuse_spec
from workspaces.audit import Draft, Refusal, command
from workspaces.canonical import digest
from workspaces.commands.blob import StoredFile, keep_blobs
from workspaces.commands.registry import change_fields, create_named, insert, insert_all
from workspaces.file_paths import BadPath, refuse_collisions
from workspaces.models import Agent, AgentFile, AgentPool, AgentVersion, Pool
from workspaces.verbs import Verb

CHANGEABLE = frozenset({"name", "description", "part"})


@command(Verb.AGENT_CREATED, needs=Permission.EDIT_REGISTRY, kind=Kind.AGENT)
def create_agent(
    event: Draft,
    *,
    actor: Actor,
    slug: str,
    name: str = "",
    description: str = "",
    part: str = "",
    id: uuid.UUID | None = None,  # noqa: A002  # the word of the column
) -> Agent:
    """Create an agent without a version yet; `part` is its part in the laboratory, such as teacher, student, judge."""
    return create_named(event, Agent, actor=actor, slug=slug, name=name, id=id, description=description, part=part)


@command(Verb.AGENT_CHANGED, needs=Permission.EDIT_REGISTRY, kind=Kind.AGENT)
def change_agent(event: Draft, /, *, actor: Actor, agent: Agent, reason: str = "", **changed: Any) -> Agent:
    """Change name, description or part; how it runs changes only by a new version."""
    event.reason = reason
    return change_fields(event, agent, CHANGEABLE, changed)


@command(Verb.AGENT_VERSION_PUBLISHED, needs=Permission.EDIT_REGISTRY, kind=Kind.AGENT)
def publish_agent_version(
    event: Draft,
    *,
    actor: Actor,
    agent: Agent,
    argv: Sequence[str],
    files: Sequence[StoredFile],
    kind: str = "train",
    parameter_schema: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
    outputs: Sequence[Mapping[str, str]] = (),
    inputs: Sequence[Need] = (),
    pools: Sequence[Pool] = (),
    secrets: Sequence[str] = (),
    tools: Sequence[str] = (),
    slots: int = 1,
    wall_seconds: int = 3600,
    memory_bytes: int | None = None,
    completion: str = AgentVersion.Completion.EXIT,
    reason: str = "",
    id: uuid.UUID | None = None,  # noqa: A002  # the word of the column
) -> AgentVersion:
    """Freeze a way to run and its stored code as the next version. Without `pools` it may run on every pool of the workspace."""
    event.reason = reason
    try:
        refuse_collisions(file.path for file in files)
    except BadPath as error:
        raise Refusal(str(error), field="files") from error
    spec: dict[str, Any] = {
        "kind": kind,
        "argv": list(argv),
        "environment": dict(environment or {}),
        "parameter_schema": dict(parameter_schema or {}),
        "outputs": [dict(output) for output in outputs],
        "inputs": [asdict(need) for need in inputs],
        "slots": slots,
        "wall_seconds": wall_seconds,
        "memory_bytes": memory_bytes,
        "secrets": sorted(set(secrets)),
        "tools": sorted(set(tools)),
        "completion": completion,
    }
    refuse_spec(spec)
    agent = Agent.objects.select_for_update(no_key=True).get(pk=agent.pk)  # one next version at a time
    bundle_hash = digest(sorted([file.path, file.sha256, file.bytes, file.is_executable] for file in files))
    # A version that says nothing of inputs has the hash that it had before versions could.
    hashed = {name: value for name, value in spec.items() if name != "inputs" or value}
    content_hash = digest({**hashed, "bundle": bundle_hash, "pools": sorted(pool.pk.hex for pool in pools)})
    newest = agent.versions.order_by("-number").first()
    if newest is not None and newest.content_hash == content_hash:
        raise Refusal(f"This is what version {newest.number} of {agent.name} is already; nothing was published.")
    version = AgentVersion(
        agent=agent,
        number=newest.number + 1 if newest else 1,
        bundle_hash=bundle_hash,
        content_hash=content_hash,
        created_by=actor.user or agent.created_by,
        **spec,
    )
    if id is not None:
        version.pk = id
    insert(event, version)
    blobs = keep_blobs(event, files)
    code = [AgentFile(version=version, path=file.path, blob=blobs[file.sha256], is_executable=file.is_executable) for file in files]
    insert_all(event, code)
    insert_all(event, [AgentPool(version=version, pool=pool) for pool in pools])
    event.details["version"] = {"number": version.number, "argv": spec["argv"], "bundle_hash": bundle_hash, "files": len(files)}
    return version
