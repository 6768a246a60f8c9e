"""What both laboratories are made of alike: the shapes of their plans, and the steps that set a workspace up by ordinary commands.

Every step looks first whether it is done, so that it can be called again after an interruption and changes nothing twice.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from runs.pools.isolation import Isolation, available
from workspaces.access import Actor, Role
from workspaces.agent_inputs import Need, needs_from
from workspaces.commands.agent import create_agent, publish_agent_version
from workspaces.commands.blob import receive_file
from workspaces.commands.limit import set_limit
from workspaces.commands.member import add_member
from workspaces.commands.objective import set_objective
from workspaces.commands.pool import bind_pool
from workspaces.commands.workspace import activate_workspace, create_workspace
from workspaces.models import Agent, AgentVersion, Limit, Membership, Objective, Pool, Unit, User, Workspace
from workspaces.queries.workspace import find_workspace

COMMON = "common"
MIB = 1024 * 1024
WORDS = "the example laboratory"
Say = Callable[[str], None]


class NotReady(RuntimeError):
    """A step has to wait; the sentence says for what."""


@dataclass(frozen=True, slots=True)
class WorkspacePlan:
    """Amounts in GPU milliseconds and runs; `week_start` is the ISO weekday."""

    slug: str
    name: str
    objective: str
    objective_benchmark: str
    objective_target: Decimal
    zone: str
    week_start: int
    billing_account: str
    cost_centre: str
    boundary_kind: str
    boundary_reason: str
    visibility: str
    region: str
    gpu_ms_per_week: int
    gpu_ms_per_run: int
    max_concurrent_runs: int


@dataclass(frozen=True, slots=True)
class AgentPlan:
    """`bundle` is a name for the laboratory's bundle_files; `parameters` a JSON Schema, draft 2020-12."""

    slug: str
    name: str
    role: str
    kind: Literal["train", "evaluate", "selfplay"]
    bundle: str
    argv: tuple[str, ...]
    parameters: MappingProxyType[str, Any]
    completion: str = "done"
    slots: int = 1
    wall_seconds: int = 120
    memory_bytes: int = 1024 * MIB
    inputs: tuple[Need, ...] = ()


def bundle_files(agents: Path, name: str, *shared: Path) -> dict[str, bytes]:
    """The code bundle of `agents/<name>`: its own files, those of `agents/common`, and `shared` ones, flat, as the run finds them in `code/`;
    sorted by name, so that the same files give the same bytes.

    Raises ValueError where there is no such bundle, or where it holds a file of a name that a shared one has too.
    """
    if name == COMMON or name not in {folder.name for folder in agents.iterdir()}:
        raise ValueError(f"there is no bundle {name}")
    files: dict[str, bytes] = {}
    for path in sorted((*shared, *agents.joinpath(COMMON).glob("*.py"), *agents.joinpath(name).glob("*.py")), key=lambda path: path.name):
        if path.name in files:
            raise ValueError(f"{path.name} stands both in {COMMON} and in {name}")
        files[path.name] = path.read_bytes()
    return files


def make_workspace(wanted: WorkspacePlan, *, slug: str, admin: Actor, say: Say) -> Workspace:
    workspace = find_workspace(slug)
    if workspace is None:
        assert admin.user is not None
        workspace = create_workspace(
            actor=admin, slug=slug, name=wanted.name, owners=[admin.user], zone=wanted.zone, week_start=wanted.week_start - 1,
            billing_account=wanted.billing_account, cost_centre=wanted.cost_centre, boundary_kind=wanted.boundary_kind,
            boundary_reason=wanted.boundary_reason, visibility=wanted.visibility, region=wanted.region,
        )  # fmt: skip
        say(f"workspace {slug} created")
    return workspace


def furnish(wanted: WorkspacePlan, *, admin: Actor, researcher: User, approver: User, as_root: bool) -> None:
    """People, the local pool and limits. Wants the workspace's scope open."""
    for user, role in ((researcher, Role.RESEARCHER), (approver, Role.APPROVER)):
        if not Membership.objects.filter(user=user).exists():
            add_member(actor=admin, user=user, role=role)
    if not Pool.objects.filter(slug="local").exists():
        isolation = next(iter(available(as_root)), Isolation.NONE)
        bind_pool(actor=admin, engine="local", slug="local", slots=2, isolation=isolation.value, is_default=True)
    limits = (
        (Unit.GPU_MS, Limit.Window.WEEK, wanted.gpu_ms_per_week, Limit.Mode.STOP),
        (Unit.GPU_MS, Limit.Window.RUN, wanted.gpu_ms_per_run, Limit.Mode.APPROVAL),
        (Unit.RUNS, Limit.Window.NOW, wanted.max_concurrent_runs, Limit.Mode.STOP),
    )
    for unit, window, amount, mode in limits:
        if not Limit.objects.filter(unit=unit, window=window, mode=mode).exists():
            set_limit(actor=admin, unit=unit, window=window, amount=amount, mode=mode, reason=WORDS)


def aim(wanted: WorkspacePlan, *, admin: Actor) -> None:
    """The objective, once its benchmark is there."""
    if not Objective.objects.filter(is_current=True).exists():
        target = float(wanted.objective_target)
        set_objective(actor=admin, statement=wanted.objective, benchmark=wanted.objective_benchmark, target=target, due_on=None)


def make_agent(entry: AgentPlan, files: Mapping[str, bytes], *, admin: Actor) -> None:
    """The agent with its version. Where its only version is another, as one that an older labsite made, the next one is published; an agent
    of which somebody has published more is theirs."""
    agent = Agent.objects.filter(slug=entry.slug).first()
    versions = list(agent.versions.order_by("-number")[:2]) if agent else []
    if len(versions) > 1 or (versions and _is_made_of(versions[0], entry, files)):
        return
    stored = [receive_file(path, [content]) for path, content in files.items()]
    agent = agent or create_agent(actor=admin, slug=entry.slug, name=entry.name, part=entry.role)
    publish_agent_version(
        actor=admin, agent=agent, argv=list(entry.argv), files=stored, kind=entry.kind, parameter_schema=plain(entry.parameters),
        slots=entry.slots, wall_seconds=entry.wall_seconds, memory_bytes=entry.memory_bytes, completion=entry.completion,
        inputs=entry.inputs,
    )  # fmt: skip


def _is_made_of(version: AgentVersion, entry: AgentPlan, files: Mapping[str, bytes]) -> bool:
    kept = dict(version.files.values_list("path", "blob__sha256"))
    wanted = {path: hashlib.sha256(content).hexdigest() for path, content in files.items()}
    return kept == wanted and version.parameter_schema == plain(entry.parameters) and needs_from(version.inputs) == entry.inputs


def open_for_launches(workspace: Workspace, *, admin: Actor, say: Say) -> None:
    workspace.refresh_from_db()
    if workspace.status == Workspace.Status.CONFIGURING:
        activate_workspace(actor=admin)
        say(f"{workspace.slug} is open for launches")


def plain(value: object) -> dict[str, Any]:
    """Read-only mappings as JSON holds them."""
    return dict(json.loads(json.dumps(value, default=dict)))
