"""Makes the laboratory w2s-medqa by ordinary commands, as its people would: set up as the admin, launched as the researcher.

Every step looks first whether it is done, so that it can be called again after an interruption and changes nothing twice.
"""

import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from labsite.examples.ground import WORDS, NotReady, Say, aim, furnish, make_agent, make_workspace, open_for_launches, plain
from labsite.examples.w2s import bundles, plan, policies, rounds
from runs.commands.approval import decide_approval
from runs.commands.artifact_dataset import import_artifact
from runs.commands.launch import launch_run
from runs.commands.policy import create_policy, propose_version
from runs.launch import LaunchRequest
from runs.lifecycle import TERMINAL, RunStatus
from runs.models import Artifact, Policy, Run
from workspaces import scope
from workspaces.access import Actor
from workspaces.commands.benchmark import create_benchmark, publish_contract
from workspaces.commands.blob import receive_file
from workspaces.commands.dataset import create_dataset, import_dataset_version
from workspaces.commands.live_dataset import make_live
from workspaces.models import Approval, Benchmark, Dataset, DatasetVersion, User, Workspace

POLL_SECONDS = 0.5
Step = tuple[str, Callable[[], bool]]


def set_up(*, slug: str, admin: Actor, researcher: User, approver: User, as_root: bool, say: Say) -> Workspace:
    """Workspace, people, pool, limits, objective, registry: all that needs no other Python. Opens scopes itself."""
    workspace = make_workspace(plan.WORKSPACE, slug=slug, admin=admin, say=say)
    with scope.open_workspace(workspace.pk):
        furnish(plan.WORKSPACE, admin=admin, researcher=researcher, approver=approver, as_root=as_root)
        for benchmark in plan.BENCHMARKS:
            # The contracts follow once what they measure on is there.
            if not Benchmark.objects.filter(slug=benchmark.slug).exists():
                create_benchmark(actor=admin, slug=benchmark.slug, name=benchmark.name, description=benchmark.description)
        aim(plan.WORKSPACE, admin=admin)
        for grown in plan.GROWN:
            _grown_dataset(admin, grown)
        for stated in plan.STATED:
            _stated(admin, stated)
        for agent in plan.AGENTS:
            make_agent(agent, bundles.bundle_files(agent.bundle), admin=admin)
        open_for_launches(workspace, admin=admin, say=say)
    return workspace


def fill(*, workspace: Workspace, admin: Actor, python: Path, say: Say) -> None:
    """The tables, made by the pool's Python, and the contracts that measure on the holdout."""
    with scope.open_workspace(workspace.pk):
        missing = [entry for entry in plan.DATASETS if not DatasetVersion.objects.filter(dataset__slug=entry.slug).exists()]
        if missing:
            with tempfile.TemporaryDirectory(prefix="labsite-w2s-") as folder:
                _make_tables(python, Path(folder))
                for entry in missing:
                    _dataset(admin, entry, Path(folder) / entry.file)
                    say(f"dataset {entry.slug} imported")
        for benchmark in (plan.GAP, plan.ACCURACY, plan.CEILING, plan.CONTROL):
            _contract(admin, benchmark)


def start(*, workspace: Workspace, researcher: Actor, approver: Actor, say: Say, seconds: float) -> None:
    """Launch the first round, each run once what it rests on is there; freeze the disagreement set before any student is trained; then have the
    policies approved, which train the students. Waits at most `seconds`."""
    deadline = time.monotonic() + seconds
    steps: tuple[Step, ...] = (
        *_launches(researcher, rounds.UNTIL_FROZEN),
        (plan.DISAGREEMENT.slug, lambda: _freeze(researcher, plan.DISAGREEMENT)),
        *((entry.slug, partial(_policy, researcher, approver, entry)) for entry in policies.POLICIES),
        *_launches(researcher, rounds.ONCE_FROZEN),
        *_launches(researcher, rounds.AT_LAST),
    )
    for name, step in steps:
        while not _in_scope(workspace, step):
            if time.monotonic() > deadline:
                raise NotReady(f"{name} waits for the runs before it; call this again once they have ended.")
            time.sleep(POLL_SECONDS)
        say(f"{name} is there")


def _launches(researcher: Actor, entries: Iterable[plan.RunPlan]) -> list[Step]:
    return [(entry.key, partial(_launch, researcher, entry)) for entry in entries]


def _in_scope(workspace: Workspace, step: Callable[[], bool]) -> bool:
    with scope.open_workspace(workspace.pk):
        return step()


def _launch(researcher: Actor, entry: plan.RunPlan) -> bool:
    """Whether the run of a plan's entry is there, launched now where it can be; False while what it rests on is not."""
    if Run.objects.filter(name=entry.key).exists():
        return True
    ended = [_ended(name) for name in (*entry.models_of, *entry.after)]
    if not all(ended):
        return False
    kinds = ("model", "control")
    made_by = [run for run in ended[: len(entry.models_of)] if run is not None]
    models = [Artifact.objects.filter(run=run, kind__in=kinds).latest("created_at").pk.hex for run in made_by]
    params = plain(entry.params)
    if entry.names_frozen_set:
        params["frozen_set"] = _frozen_hash()
    request = LaunchRequest(
        benchmark=entry.benchmark, agent=entry.agent, datasets=entry.datasets, artifacts=tuple(models), parameters=params,
        seed=entry.seed, name=entry.key, reason=entry.reason,
    )  # fmt: skip
    launch_run(actor=researcher, request=request)
    return True


def _ended(name: str) -> Run | None:
    """The newest run of that name, or the first that the policy of that name has launched, once it has succeeded; None while it is at work. Raises
    NotReady where it ended otherwise."""
    run = Run.objects.filter(name=name).order_by("-created_at").first()
    run = run or Run.objects.filter(sweep__decision__policy__slug=name).order_by("created_at", "number").first()
    if run is None or RunStatus(run.status) not in TERMINAL:
        return None
    if run.status != RunStatus.SUCCEEDED:
        raise NotReady(f"{name} ended as {run.get_status_display()}: {run.reason}")
    return run


def _freeze(researcher: Actor, wanted: plan.FrozenSetPlan) -> bool:
    """Keep what the finder found as a holdout of its own, and publish the contract that measures on it."""
    if not DatasetVersion.objects.filter(dataset__slug=wanted.slug).exists():
        finder = _ended(wanted.made_by)
        if finder is None:
            return False
        found = Artifact.objects.filter(run=finder, kind=wanted.artifact_kind).latest("created_at")
        dataset = Dataset.objects.filter(slug=wanted.slug).first() or create_dataset(
            actor=researcher, slug=wanted.slug, name=wanted.name, description=wanted.description, origin=Dataset.Origin.BENCHMARK,
            licence=plan.DATASETS[0].licence,
        )  # fmt: skip
        import_artifact(
            actor=researcher, dataset=dataset, artifact=found, role=DatasetVersion.Role.HOLDOUT, path=wanted.file,
            records=found.metadata["records"], reason="Frozen before any student is trained",
        )  # fmt: skip
    _contract(researcher, plan.ON_DISAGREEMENT)
    return True


def _policy(researcher: Actor, approver: Actor, entry: policies.PolicyPlan) -> bool:
    """Proposed by the one and approved by the other, as everything that acts by itself."""
    policy = Policy.objects.filter(slug=entry.slug).first() or create_policy(actor=researcher, slug=entry.slug, name=entry.name)
    if not policy.versions.exists():
        document = plain(entry.document)
        if entry.names_frozen_set:
            document["action"]["parameters"]["frozen_set"] = _frozen_hash()
        propose_version(actor=researcher, policy=policy, document=document, reason=entry.reason)
    version = policy.versions.latest("number")
    asked = Approval.objects.filter(subject_id=version.pk, status=Approval.Status.PENDING).first()
    if asked is not None and version.number == 1:
        decide_approval(actor=approver, approval=asked, approves=True, comment=WORDS, seen_hash=asked.content_hash)
    return True


def _frozen_hash() -> str:
    return str(DatasetVersion.objects.get(dataset__slug=plan.DISAGREEMENT.slug, number=1).content_hash)


def _contract(actor: Actor, entry: plan.BenchmarkPlan) -> None:
    benchmark = Benchmark.objects.get(slug=entry.slug)
    if not benchmark.contracts.exists():
        publish_contract(
            actor=actor, benchmark=benchmark, metric=entry.metric, direction=entry.direction,
            holdout=DatasetVersion.objects.get(dataset__slug=entry.holdout, number=1), terms=entry.terms,
        )  # fmt: skip


def _grown_dataset(admin: Actor, entry: plan.GrownDatasetPlan) -> None:
    dataset = Dataset.objects.filter(slug=entry.slug).first() or create_dataset(
        actor=admin, slug=entry.slug, name=entry.name, description=entry.description, origin=Dataset.Origin.EXTERNAL,
        licence=plan.DATASETS[0].licence,
    )  # fmt: skip
    if not dataset.is_live:
        make_live(actor=admin, dataset=dataset, window_records=entry.window_records, reason=WORDS)


def _stated(admin: Actor, entry: plan.StatedPlan) -> None:
    """The document as the first version of a dataset of its own. One that is stated anew is the next version, by whoever states it."""
    dataset = Dataset.objects.filter(slug=entry.slug).first() or create_dataset(
        actor=admin, slug=entry.slug, name=entry.name, description=entry.description, origin=Dataset.Origin.PRIVATE, licence=plan.STATED_LICENCE
    )  # fmt: skip
    if not dataset.versions.exists():
        received = receive_file(entry.file, [bundles.OBJECTS.joinpath(entry.file).read_bytes()])
        import_dataset_version(
            actor=admin, dataset=dataset, role=DatasetVersion.Role.ANY, files=[received], records=1, source="people of this laboratory"
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
