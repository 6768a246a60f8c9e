"""Makes the laboratory autogo-main by ordinary commands, as its people would: set up as the admin, launched as the researcher.

Every step looks first whether it is done, so that it can be called again after an interruption and changes nothing twice.
"""

import time
from collections.abc import Callable
from typing import Any

from labsite.examples.autogo import bundles, plan, policies
from labsite.examples.ground import WORDS, NotReady, Say, aim, furnish, make_agent, make_workspace, open_for_launches, plain
from runs.commands.approval import decide_approval
from runs.commands.launch import launch_run
from runs.commands.policy import create_policy, propose_version
from runs.commands.sweep import create_sweep
from runs.launch import LaunchRequest
from runs.lifecycle import TERMINAL, RunStatus
from runs.models import Artifact, Evaluation, Policy, Run, Sweep
from workspaces import scope
from workspaces.access import Actor
from workspaces.commands.benchmark import create_benchmark, publish_contract
from workspaces.commands.dataset import create_dataset
from workspaces.commands.live_dataset import make_live
from workspaces.models import Approval, Benchmark, Dataset, User, Workspace

POLL_SECONDS = 0.5


def set_up(*, slug: str, admin: Actor, researcher: User, approver: User, as_root: bool, say: Say) -> Workspace:
    """Workspace, people, pool, limits, objective, registry. Opens scopes itself."""
    workspace = make_workspace(plan.WORKSPACE, slug=slug, admin=admin, say=say)
    with scope.open_workspace(workspace.pk):
        furnish(plan.WORKSPACE, admin=admin, researcher=researcher, approver=approver, as_root=as_root)
        for benchmark in plan.BENCHMARKS:
            _benchmark(admin, benchmark)
        aim(plan.WORKSPACE, admin=admin)
        _live_dataset(admin, plan.SELF_PLAY)
        for agent in plan.AGENTS:
            make_agent(agent, bundles.bundle_files(agent.bundle), admin=admin)
        open_for_launches(workspace, admin=admin, say=say)
        for policy in policies.POLICIES:
            _policy(Actor.of(researcher), Actor.of(approver), policy)
    return workspace


def start(*, workspace: Workspace, researcher: Actor, say: Say, seconds: float) -> None:
    """Launch what the plan names, each once what it rests on is there; waits at most `seconds` for that."""
    deadline = time.monotonic() + seconds
    steps: tuple[tuple[str, Callable[[], bool]], ...] = (
        (plan.SELF_PLAY_RUNS[0].key, lambda: _launch(researcher, plan.SELF_PLAY_RUNS[0])),
        (plan.SELF_PLAY_RUNS[1].key, lambda: _other_games(researcher)),
        (plan.SWEEP.name, lambda: _sweep(researcher, plan.SWEEP)),
        (plan.ARENA_RUN.key, lambda: _launch(researcher, plan.ARENA_RUN)),
    )
    for name, step in steps:
        while not _in_scope(workspace, step):
            if time.monotonic() > deadline:
                raise NotReady(f"{name} waits for the runs before it; call this again once they have ended.")
            time.sleep(POLL_SECONDS)
        say(f"{name} is launched")


def _in_scope(workspace: Workspace, step: Callable[[], bool]) -> bool:
    with scope.open_workspace(workspace.pk):
        return step()


def _launch(researcher: Actor, entry: plan.RunPlan) -> bool:
    """Whether the run of a plan's entry is there, launched now where it can be; False while what it rests on is not."""
    if Run.objects.filter(name=entry.key).exists():
        return True
    request = _request(entry)
    if request is None:
        return False
    launch_run(actor=researcher, request=request)
    return True


def _other_games(researcher: Actor) -> bool:
    """All further games, once the first run's are cut into windows: pieces are cut as they come, and the sweep is to learn from the same games
    wherever the laboratory is made."""
    if not Dataset.objects.filter(slug=plan.SELF_PLAY.window(max(plan.SWEEP.shared.windows))).exists():
        _refuse_failures(Run.objects.filter(name=plan.SELF_PLAY_RUNS[0].key))
        return False
    for entry in plan.SELF_PLAY_RUNS[1:]:
        _launch(researcher, entry)
    return True


def _sweep(researcher: Actor, wanted: plan.SweepPlan) -> bool:
    if Sweep.objects.filter(name=wanted.name).exists():
        return True
    request = _request(wanted.shared)
    if request is None:
        return False
    create_sweep(actor=researcher, name=wanted.name, space=plain(wanted.space), request=request, purpose=wanted.purpose)
    return True


def _request(entry: plan.RunPlan) -> LaunchRequest | None:
    """The launch of a plan's entry; None while windows or checkpoints that it rests on are still to come."""
    windows = tuple(plan.SELF_PLAY.window(number) for number in entry.windows)
    if Dataset.objects.filter(slug__in=windows).count() < len(windows):
        _refuse_failures(Run.objects.filter(name__in=[run.key for run in plan.SELF_PLAY_RUNS]))
        return None
    checkpoints: list[str] = []
    for name in entry.checkpoints_of:
        found = _checkpoints(name)
        if found is None:
            return None
        checkpoints += found
    return LaunchRequest(
        benchmark=entry.benchmark, agent=entry.agent, datasets=windows, artifacts=tuple(checkpoints), parameters=plain(entry.params),
        seed=entry.seed, name=entry.key, reason=entry.reason,
    )  # fmt: skip


def _checkpoints(sweep_name: str) -> list[str] | None:
    """Ids of the checkpoints of a sweep's members, the best by its own score first, as an arena scores the first; None while one runs."""
    sweep = Sweep.objects.filter(name=sweep_name).first()
    members = list(Run.objects.filter(sweep=sweep, retry_of=None).order_by("sweep_member")) if sweep else []
    _refuse_failures(members)
    if sweep is None or len(members) < sweep.members or any(RunStatus(run.status) not in TERMINAL for run in members):
        return None
    metric = plan.FAST_LEARNING.metric
    shares = {each.run_id: each.value for each in Evaluation.objects.filter(run__in=members, metric=metric).order_by("created_at")}
    best_first = sorted(members, key=lambda run: -shares.get(run.pk, 0.0))
    return [Artifact.objects.filter(run=run, kind="checkpoint").latest("created_at").pk.hex for run in best_first]


def _refuse_failures(runs: Any) -> None:
    for run in runs:
        if RunStatus(run.status) in TERMINAL and run.status != RunStatus.SUCCEEDED:
            raise NotReady(f"{run.name} ended as {run.get_status_display()}: {run.reason}")


def _benchmark(admin: Actor, entry: plan.BenchmarkPlan) -> None:
    benchmark = Benchmark.objects.filter(slug=entry.slug).first() or create_benchmark(
        actor=admin, slug=entry.slug, name=entry.name, description=entry.description
    )  # fmt: skip
    if not benchmark.contracts.exists():
        publish_contract(
            actor=admin, benchmark=benchmark, metric=entry.metric, direction=entry.direction, unit=entry.unit, terms=entry.terms
        )  # fmt: skip


def _policy(researcher: Actor, approver: Actor, entry: policies.PolicyPlan) -> None:
    """Proposed by the one and approved by the other, as everything that acts by itself."""
    policy = Policy.objects.filter(slug=entry.slug).first() or create_policy(actor=researcher, slug=entry.slug, name=entry.name)
    if policy.versions.exists():
        return
    version = propose_version(actor=researcher, policy=policy, document=plain(entry.document), reason=entry.reason)
    asked = Approval.objects.get(subject_id=version.pk)
    decide_approval(actor=approver, approval=asked, approves=True, comment=WORDS, seen_hash=asked.content_hash)


def _live_dataset(admin: Actor, entry: plan.LiveDatasetPlan) -> None:
    dataset = Dataset.objects.filter(slug=entry.slug).first() or create_dataset(
        actor=admin, slug=entry.slug, name=entry.name, description=entry.description, origin=entry.origin, licence=entry.licence
    )  # fmt: skip
    if not dataset.is_live:
        make_live(actor=admin, dataset=dataset, window_records=entry.window_records, reason=WORDS)
