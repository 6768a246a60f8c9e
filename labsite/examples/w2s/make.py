"""Makes the laboratory w2s-medqa by ordinary commands, as its people would: set up as the admin, launched as the researcher.

Every step looks first whether it is done, so that it can be called again after an interruption and changes nothing twice.
"""

import subprocess
import tempfile
import time
from pathlib import Path

from labsite.examples.ground import NotReady, Say, aim, furnish, make_agent, make_workspace, open_for_launches, plain
from labsite.examples.w2s import bundles, plan
from runs.commands.launch import launch_run
from runs.launch import LaunchRequest
from runs.lifecycle import TERMINAL, RunStatus
from runs.models import Artifact, Run
from workspaces import scope
from workspaces.access import Actor
from workspaces.commands.benchmark import create_benchmark, publish_contract
from workspaces.commands.blob import receive_file
from workspaces.commands.dataset import create_dataset, import_dataset_version
from workspaces.models import (
    Benchmark,
    Dataset,
    DatasetVersion,
    User,
    Workspace,
)


def set_up(*, slug: str, admin: Actor, researcher: User, approver: User, as_root: bool, say: Say) -> Workspace:
    """Workspace, people, pool, limits, objective, registry: all that needs no other Python. Opens scopes itself."""
    workspace = make_workspace(plan.WORKSPACE, slug=slug, admin=admin, say=say)
    with scope.open_workspace(workspace.pk):
        furnish(plan.WORKSPACE, admin=admin, researcher=researcher, approver=approver, as_root=as_root)
        if not Benchmark.objects.filter(slug=plan.BENCHMARK.slug).exists():
            # The contract follows once its holdout is there.
            create_benchmark(actor=admin, slug=plan.BENCHMARK.slug, name=plan.BENCHMARK.name, description=plan.BENCHMARK.description)
        aim(plan.WORKSPACE, admin=admin)
        for agent in plan.AGENTS:
            make_agent(agent, bundles.bundle_files(agent.bundle), admin=admin)
        open_for_launches(workspace, admin=admin, say=say)
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
            benchmark=entry.benchmark, agent=entry.agent, datasets=entry.datasets, artifacts=artifacts, parameters=plain(entry.params),
            seed=entry.seed, name=entry.key, reason=entry.reason,
        )  # fmt: skip
        return launch_run(actor=researcher, request=request).run


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
