"""Makes the laboratory w2s-medqa by ordinary commands, as its people would: set up as the admin, launched as the researcher.

Every step looks first whether it is done, so that it can be called again after an interruption and changes nothing twice.
"""

import json
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from labsite.examples.w2s import bundles, plan
from runs.commands.launch import launch_run
from runs.launch import LaunchRequest
from runs.lifecycle import TERMINAL, RunStatus
from runs.models import Artifact, Run
from runs.pools.isolation import Isolation, available
from workspaces import scope
from workspaces.access import Actor, Role
from workspaces.commands.agent import create_agent, publish_agent_version
from workspaces.commands.benchmark import create_benchmark, publish_contract
from workspaces.commands.blob import StoredFile, receive_file
from workspaces.commands.dataset import create_dataset, import_dataset_version
from workspaces.commands.limit import set_limit
from workspaces.commands.member import add_member
from workspaces.commands.objective import set_objective
from workspaces.commands.pool import bind_pool
from workspaces.commands.workspace import activate_workspace, create_workspace
from workspaces.models import (
    Agent,
    Benchmark,
    Dataset,
    DatasetVersion,
    Limit,
    Membership,
    Objective,
    Pool,
    Unit,
    User,
    Workspace,
)
from workspaces.queries.workspace import find_workspace

Say = Callable[[str], None]
WORDS = "the example laboratory"


class NotReady(RuntimeError):
    """A step has to wait; the sentence says for what."""


def set_up(*, slug: str, admin: Actor, researcher: User, approver: User, as_root: bool, say: Say) -> Workspace:
    """Workspace, people, pool, limits, objective, registry: all that needs no other Python. Opens scopes itself."""
    wanted = plan.WORKSPACE
    workspace = find_workspace(slug)
    if workspace is None:
        assert admin.user is not None
        workspace = create_workspace(
            actor=admin, slug=slug, name=wanted.name, owners=[admin.user], zone=wanted.zone, week_start=wanted.week_start - 1,
            billing_account=wanted.billing_account, cost_centre=wanted.cost_centre, boundary_kind=wanted.boundary_kind,
            boundary_reason=wanted.boundary_reason, visibility=wanted.visibility, region=wanted.region,
        )  # fmt: skip
        say(f"workspace {slug} created")
    with scope.open_workspace(workspace.pk):
        for user, role in ((researcher, Role.RESEARCHER), (approver, Role.APPROVER)):
            if not Membership.objects.filter(user=user).exists():
                add_member(actor=admin, user=user, role=role)
        if not Pool.objects.filter(slug="local").exists():
            isolation = next(iter(available(as_root)), Isolation.NONE)
            bind_pool(actor=admin, engine="local", slug="local", slots=2, isolation=isolation.value, is_default=True)
        _limits(admin)
        if not Benchmark.objects.filter(slug=plan.BENCHMARK.slug).exists():
            # The contract follows once its holdout is there.
            create_benchmark(actor=admin, slug=plan.BENCHMARK.slug, name=plan.BENCHMARK.name, description=plan.BENCHMARK.description)
        if not Objective.objects.filter(is_current=True).exists():
            set_objective(
                actor=admin, statement=wanted.objective, benchmark=wanted.objective_benchmark, target=float(wanted.objective_target), due_on=None
            )  # fmt: skip
        for agent in plan.AGENTS:
            _agent(admin, agent)
        workspace.refresh_from_db()
        if workspace.status == Workspace.Status.CONFIGURING:
            activate_workspace(actor=admin)
            say(f"{slug} is open for launches")
    return workspace


def fill(*, workspace: Workspace, admin: Actor, python: Path, say: Say) -> None:
    """The tables, made by the pool's Python, and the contract that measures on the holdout."""
    with scope.open_workspace(workspace.pk):
        missing = [entry for entry in plan.DATASETS if not DatasetVersion.objects.filter(dataset__slug=entry.slug).exists()]
        if missing:
            with tempfile.TemporaryDirectory(prefix="labsite-w2s-") as folder:
                _make_tables(python, Path(folder))
                for entry in missing:
                    _dataset(admin, entry, Path(folder) / entry.file)
                    say(f"dataset {entry.slug} imported")
        benchmark = Benchmark.objects.get(slug=plan.BENCHMARK.slug)
        if not benchmark.contracts.exists():
            publish_contract(
                actor=admin, benchmark=benchmark, metric=plan.BENCHMARK.metric, direction=plan.BENCHMARK.direction,
                holdout=DatasetVersion.objects.get(dataset__slug=plan.BENCHMARK.holdout, number=1),
                terms="Share of right answers on all records of the holdout; a record without an answer counts as wrong.",
            )  # fmt: skip


def start(*, workspace: Workspace, researcher: Actor, say: Say, seconds: float) -> list[Run]:
    """Launch what the plan names, each evaluation once its teacher has succeeded; waits at most `seconds` for them."""
    deadline = time.monotonic() + seconds
    started: dict[str, Run] = {}
    for entry in plan.RUNS:
        while (run := _launch(workspace, researcher, entry)) is None:
            if time.monotonic() > deadline:
                raise NotReady(f"{entry.key} waits for {entry.model_of}; call this again once it has ended.")
            time.sleep(0.5)
        started[entry.key] = run
        say(f"{entry.key} is {run.get_status_display()}")
    return list(started.values())


def _launch(workspace: Workspace, researcher: Actor, entry: plan.RunPlan) -> Run | None:
    """The run of a plan's entry, launched where it is not there yet; None while its teacher still runs."""
    with scope.open_workspace(workspace.pk):
        known = Run.objects.filter(name=entry.key).order_by("created_at").first()
        if known is not None:
            return known
        artifacts: tuple[str, ...] = ()
        if entry.model_of is not None:
            teacher = Run.objects.filter(name=entry.model_of).order_by("-created_at").first()
            if teacher is None or RunStatus(teacher.status) not in TERMINAL:
                return None
            if teacher.status != RunStatus.SUCCEEDED:
                raise NotReady(f"{entry.model_of} ended as {teacher.get_status_display()}: {teacher.reason}")
            artifacts = (Artifact.objects.filter(run=teacher, kind="model").latest("created_at").pk.hex,)
        request = LaunchRequest(
            benchmark=entry.benchmark, agent=entry.agent, datasets=entry.datasets, artifacts=artifacts, parameters=_plain(entry.params),
            seed=entry.seed, name=entry.key, reason=entry.reason,
        )  # fmt: skip
        return launch_run(actor=researcher, request=request).run


def _limits(admin: Actor) -> None:
    wanted = plan.WORKSPACE
    limits = (
        (Unit.GPU_MS, Limit.Window.WEEK, wanted.gpu_ms_per_week, Limit.Mode.STOP),
        (Unit.GPU_MS, Limit.Window.RUN, wanted.gpu_ms_per_run, Limit.Mode.APPROVAL),
        (Unit.RUNS, Limit.Window.NOW, wanted.max_concurrent_runs, Limit.Mode.STOP),
    )
    for unit, window, amount, mode in limits:
        if not Limit.objects.filter(unit=unit, window=window, mode=mode).exists():
            set_limit(actor=admin, unit=unit, window=window, amount=amount, mode=mode, reason=WORDS)


def _agent(admin: Actor, entry: plan.AgentPlan) -> None:
    if Agent.objects.filter(slug=entry.slug).exists():
        return
    files: list[StoredFile] = [receive_file(path, [content]) for path, content in bundles.bundle_files(entry.bundle).items()]
    agent = create_agent(actor=admin, slug=entry.slug, name=entry.name, part=entry.role)
    publish_agent_version(
        actor=admin, agent=agent, argv=list(entry.argv), files=files, kind=entry.kind, parameter_schema=_plain(entry.parameters),
        slots=entry.slots, wall_seconds=entry.wall_seconds, memory_bytes=entry.memory_bytes, completion=entry.completion,
    )  # fmt: skip


def _dataset(admin: Actor, entry: plan.DatasetPlan, file: Path) -> None:
    dataset = Dataset.objects.filter(slug=entry.slug).first() or create_dataset(
        actor=admin, slug=entry.slug, name=entry.name, origin=Dataset.Origin.EXTERNAL, licence=entry.licence
    )  # fmt: skip
    received = receive_file(entry.file, [file.read_bytes()])
    import_dataset_version(actor=admin, dataset=dataset, role=entry.role, files=[received], source=entry.origin)


def _make_tables(python: Path, folder: Path) -> None:
    if not python.exists():
        raise NotReady("the pool's Python environment is not there yet")
    done = subprocess.run([python, "-I", bundles.MAKE_TABLE, folder], capture_output=True, text=True, timeout=120, check=False)  # noqa: S603  # our own script, a list
    if done.returncode:
        raise NotReady(f"the tables could not be made: {done.stderr.strip().splitlines()[-1:]}")


def _plain(value: object) -> dict[str, object]:
    """Read-only mappings as JSON holds them."""
    return dict(json.loads(json.dumps(value, default=dict)))
