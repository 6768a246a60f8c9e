"""A workspace that may launch, with everything a run rests on; and the jobs of labsite run by hand, without a queue."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from runs.commands.launch import launch_run
from runs.jobs import lanes
from runs.jobs.collect import collect_attempt
from runs.jobs.dispatch import dispatch_run
from runs.jobs.lanes import Work
from runs.jobs.watch import watch_attempts
from runs.launch import LaunchRequest
from runs.lifecycle import TERMINAL, RunStatus
from runs.models import Run
from tests.factories import make_workspace
from tests.factories_registry import make_agent_version, make_benchmark, make_dataset_version
from workspaces import scope
from workspaces.access import Actor
from workspaces.commands.limit import set_limit
from workspaces.commands.objective import set_objective
from workspaces.commands.pool import bind_pool
from workspaces.commands.workspace import activate_workspace, configure_workspace
from workspaces.models import Engine, Installation, Limit, Pool, Unit, Workspace

HOUR = 3_600_000


@dataclass(frozen=True)
class Laboratory:
    workspace: Workspace
    owner: Actor

    @contextmanager
    def opened(self) -> Iterator[None]:
        with scope.open_workspace(self.workspace.pk):
            yield


def make_laboratory(
    slug: str = "lab",
    *,
    code: bytes = b"print('hello')\n",
    weekly_gpu_hours: int = 100,
    at_once: int = 4,
    slots: int = 4,
    isolation: str = Pool.Isolation.NONE,
    milli_gpu_per_slot: int = 1000,
    engine_slots: int = 16,
    wall_seconds: int = 60,
) -> Laboratory:
    """A laboratory ready to launch: benchmark `accuracy`, dataset `table`, agent `worker` running `code`, pool `local`."""
    Installation.objects.get_or_create(is_current=True)
    engine, _ = Engine.objects.get_or_create(slug="local", defaults={"kind": Engine.Kind.LOCAL, "slots": engine_slots})
    workspace, owner = make_workspace(slug)
    with scope.open_workspace(workspace.pk):
        configure_workspace(
            actor=owner, boundary_kind="team", boundary_reason="One group, one budget.", billing_account="acc-1", cost_centre="cc-1",
            zone="Europe/Berlin", week_start=0, visibility="private", region="local",
        )  # fmt: skip
        bind_pool(
            actor=owner, engine=engine.slug, slug="local", slots=slots, isolation=isolation, milli_gpu_per_slot=milli_gpu_per_slot, is_default=True
        )  # fmt: skip
        set_limit(
            actor=owner, unit=Unit.GPU_MS, window=Limit.Window.WEEK, amount=weekly_gpu_hours * HOUR, mode=Limit.Mode.STOP, reason="start"
        )
        set_limit(actor=owner, unit=Unit.RUNS, window=Limit.Window.NOW, amount=at_once, mode=Limit.Mode.STOP, reason="start")
        make_benchmark(owner)
        make_dataset_version(owner)
        make_agent_version(owner, code=code, wall_seconds=wall_seconds)
        set_objective(actor=owner, statement="Raise accuracy", benchmark="accuracy", target=0.9, due_on=None)
        activate_workspace(actor=owner)
    workspace.refresh_from_db()
    return Laboratory(workspace, owner)


def launch(laboratory: Laboratory, **asked: object) -> Run:
    """Launch on the laboratory's own things; its scope must be open."""
    request = LaunchRequest(**{"benchmark": "accuracy", "agent": "worker", "datasets": ("table",), **asked})  # type: ignore[arg-type]  # test input
    return launch_run(actor=laboratory.owner, request=request).run


def dispatch(laboratory: Laboratory) -> None:
    """What a worker does when it hears the bell. Opens the scope itself."""
    dispatch_run(workspace_id=laboratory.workspace.pk.hex, subject_id=laboratory.workspace.pk.hex)
    assert lanes.wait(60, Work.START)


def watch(laboratory: Laboratory) -> None:
    """Look at every attempt, and collect what those that have ended left."""
    watch_only(laboratory)
    collect(laboratory)


def watch_only(laboratory: Laboratory) -> None:
    watch_attempts(workspace_id=laboratory.workspace.pk.hex, subject_id=laboratory.workspace.pk.hex)
    assert lanes.wait(60, Work.WATCH, Work.START)


def collect(laboratory: Laboratory) -> None:
    collect_attempt(workspace_id=laboratory.workspace.pk.hex, subject_id=laboratory.workspace.pk.hex)
    assert lanes.wait(60, Work.COLLECT)


def drive(laboratory: Laboratory, run: Run, *, until: frozenset[RunStatus] = TERMINAL, seconds: float = 30) -> Run:
    """Dispatch and watch until the run has one of the statuses; fails after `seconds`. Opens the scope itself."""
    deadline = time.monotonic() + seconds
    while True:
        dispatch(laboratory)
        watch(laboratory)
        with laboratory.opened():
            found = Run.objects.get(pk=run.pk)
        if RunStatus(found.status) in until:
            return found
        assert time.monotonic() < deadline, f"{run.name} is still {found.status} after {seconds} s: {found.reason}"
        time.sleep(0.05)
