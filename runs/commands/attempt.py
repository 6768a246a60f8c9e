"""The life of an attempt, as labsite's own jobs move it: claimed, running, ended once. Every command locks the run and checks its status."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.models import Max
from django.utils import timezone

from runs import queue
from runs.commands.launch import enqueue
from runs.commands.run import end
from runs.lifecycle import ACTIVE, OPEN_ATTEMPTS, AttemptStatus, RunStatus, end_of
from runs.models import Artifact, Attempt, Evaluation, QueueItem, Run, Watch
from runs.pools.base import Exit
from runs.pools.events import Score
from runs.queries.order import TOKEN_SLACK, token_id, token_secret
from workspaces import ids, ledger, scope
from workspaces.access import Actor
from workspaces.audit import Draft, Refusal, command
from workspaces.commands.blob import keep_blob
from workspaces.models import Benchmark, Contract, Engine, EngineSlot, Installation, Limit, NotFound, Pool, Token, Unit, Workspace
from workspaces.queries.token import hash_secret
from workspaces.verbs import Verb

MAX_ATTEMPTS = 2  # a lost attempt is tried once more (feature 52)


@dataclass(frozen=True, slots=True)
class Collected:
    """An output that lies in the store already and now becomes an artifact."""

    path: str
    name: str
    kind: str
    metadata: dict[str, Any]
    sha256: str
    bytes: int


@dataclass(frozen=True, slots=True)
class Harvest:
    """What an ended attempt leaves."""

    artifacts: tuple[Collected, ...] = ()
    scores: tuple[Score, ...] = ()
    said_done: bool = False
    api_micros: int = 0
    notes: dict[str, Any] = field(default_factory=dict)


@command(Verb.ATTEMPT_STARTED, needs=None, by_system=True)
def start_attempt(event: Draft, *, actor: Actor, run: Run) -> Attempt:
    """Claim a queued run for its pool: a slot of the pool and of the engine, room under the limit of runs at once, budget of this window.

    Raises Refusal with what it waits for; then nothing has changed.
    """
    Workspace.objects.select_for_update(no_key=True).get(pk=scope.current_id())
    run = Run.objects.select_for_update().get(pk=run.pk)
    item = QueueItem.objects.select_for_update().filter(run=run).first()
    if run.status != RunStatus.QUEUED or item is None:
        raise Refusal(f"{run.name} is {run.get_status_display()} and waits for no pool.")
    pool = Pool.objects.select_related("engine").get(pk=run.pool_id)
    _room(run, pool)
    _into_window(event, run)
    event.about = run
    attempt_id = ids.uuid7()
    number = (Attempt.objects.filter(run=run).aggregate(last=Max("number"))["last"] or 0) + 1
    epoch = Installation.objects.get(is_current=True).epoch
    attempt = Attempt.objects.create(
        id=attempt_id, run=run, pool=pool, number=number, key=f"lab-{epoch}-{attempt_id.hex}", status=AttemptStatus.CREATED, fence=number
    )
    _take_slots(pool.engine, attempt, run.slots)
    Watch.objects.create(attempt=attempt, lease_until=timezone.now() + timedelta(seconds=60))
    run_token = Token.objects.create(
        id=token_id(attempt),
        kind=Token.Kind.RUN,
        holder_id=run.requested_by_id,
        name=run.name[:120],
        secret_hash=hash_secret(token_secret(attempt)),
        scopes=["run:write", "artifact:write", "memory:write"],
        run_id=run.pk,
        expires_at=timezone.now() + timedelta(seconds=run.wall_seconds) + TOKEN_SLACK,
    )
    event.deleting(item)
    item.delete()
    event.change(run, status=RunStatus.STARTING)
    event.created(attempt, run_token)
    event.details["attempt"] = {"number": number, "key": attempt.key, "pool": pool.slug}
    return attempt


@command(Verb.ATTEMPT_RUNNING, needs=None, by_system=True)
def mark_running(event: Draft, *, actor: Actor, attempt: Attempt, started_at: datetime | None = None) -> Attempt:
    """The pool has it and its process lives."""
    run, attempt = _locked(attempt)
    if attempt.status not in (AttemptStatus.CREATED, AttemptStatus.SUBMITTED):
        raise Refusal("The attempt has moved on.")
    now = timezone.now()
    event.changing(run)
    event.about = run
    event.change(attempt, status=AttemptStatus.RUNNING, submitted_at=attempt.submitted_at or now, started_at=started_at or now)
    if run.status == RunStatus.STARTING:
        event.change(run, status=RunStatus.RUNNING, started_at=run.started_at or started_at or now)
    return attempt


@command(Verb.RUN_ENDED, needs=None, by_system=True)
def finish_attempt(event: Draft, *, actor: Actor, attempt: Attempt, ended: Exit, harvest: Harvest) -> Run:
    """The confirmed end of an attempt: its run moves once, what it left is kept, its money settled, its slots freed.

    A launcher that was lost with tries left puts the run back in the queue, its reservation kept.
    """
    run, attempt = _locked(attempt)
    if attempt.status not in OPEN_ATTEMPTS:
        raise Refusal("The end of this attempt is on record already.")
    event.changing(run)
    event.about = run
    _close(event, run, attempt, ended, AttemptStatus.LOST if ended.reason == "launcher_lost" else AttemptStatus.ENDED)
    if ended.reason == "launcher_lost" and attempt.number < MAX_ATTEMPTS and run.status != RunStatus.CANCELLING:
        event.verb = Verb.RUN_REQUEUED
        _requeue(event, run)
        return run
    status, code = end_of(
        exit_code=ended.code, reason=ended.reason, said_done=harvest.said_done, wants_done=run.agent_version.completion == "done"
    )  # fmt: skip
    if run.status == RunStatus.CANCELLING and ended.reason == "launcher_lost":
        status, code = RunStatus.CANCELLED, "cancelled"
    kept = {entry.path: _keep(event, run, entry) for entry in harvest.artifacts}
    if status == RunStatus.SUCCEEDED:
        _evaluate(event, run, harvest.scores)
    event.change(run, spent_api_micros=run.spent_api_micros + harvest.api_micros)
    event.details |= {
        "status": status,
        "artifacts": len(kept),
        "exit": {"code": ended.code, "signal": ended.signal, "reason": ended.reason},
    }
    event.details |= {key: value for key, value in harvest.notes.items() if value}
    end(event, run=run, status=status, reason_code=code, reason=_words(ended, code))
    queue.ring("sweep_workspace", subject=scope.current_id())
    return run


@command(Verb.RUN_REQUEUED, needs=None, by_system=True)
def interrupt_attempt(event: Draft, *, actor: Actor, attempt: Attempt, ended: Exit) -> Run:
    """Labsite was stopped and ended the attempt: back to the queue, reservation kept; the next start makes a new attempt (contracts.md E)."""
    run, attempt = _locked(attempt)
    if attempt.status not in OPEN_ATTEMPTS:
        raise Refusal("The end of this attempt is on record already.")
    event.changing(run)
    event.about = run
    _close(event, run, attempt, ended, AttemptStatus.INTERRUPTED)
    if run.status == RunStatus.CANCELLING:
        event.verb = Verb.RUN_CANCELLED
        end(event, run=run, status=RunStatus.CANCELLED, reason_code="cancelled")
    else:
        _requeue(event, run)
    return run


@command(Verb.ATTEMPT_FAILED_TO_START, needs=None, by_system=True)
def fail_start(event: Draft, *, actor: Actor, attempt: Attempt, reason: str) -> Run:
    """The pool refused and confirmed that nothing runs: the run fails, its reservation is released whole."""
    run, attempt = _locked(attempt)
    if attempt.status != AttemptStatus.CREATED:
        raise Refusal("The attempt has started meanwhile.")
    event.changing(run)
    event.about = run
    now = timezone.now().timestamp()
    ended = Exit(code=None, signal=None, started_at=now, ended_at=now, reason="not_started", peak_memory_bytes=None, cpu_seconds=None)
    _close(event, run, attempt, ended, AttemptStatus.ENDED)
    status = RunStatus.CANCELLED if run.status == RunStatus.CANCELLING else RunStatus.FAILED
    end(event, run=run, status=status, reason_code="could_not_start", reason=reason)
    return run


# --- Pieces -------------------------------------------------------------------------------------------------------------------------------


def _locked(attempt: Attempt) -> tuple[Run, Attempt]:
    run = Run.objects.select_for_update(of=("self",)).select_related("agent_version", "pool").get(pk=attempt.run_id)
    return run, Attempt.objects.select_for_update().get(pk=attempt.pk)


def _room(run: Run, pool: Pool) -> None:
    busy = sum(Attempt.objects.filter(pool=pool, status__in=sorted(OPEN_ATTEMPTS)).values_list("run__slots", flat=True))
    if busy + run.slots > pool.slots:
        raise Refusal(f"{pool.slug} has {busy} of {pool.slots} slots taken; it starts when one is free.")
    limit = Limit.objects.filter(unit=Unit.RUNS, window=Limit.Window.NOW).order_by("amount").first()
    at_once = Run.objects.filter(status__in=sorted(ACTIVE)).count()
    if limit is not None and at_once + 1 > limit.amount:
        raise Refusal(f"{at_once} of {limit.amount} runs run at once; it starts when one ends.")
    if not pool.is_accepting or not pool.engine.is_accepting:
        raise Refusal(f"{pool.slug} takes no new work; it starts when the pool is opened again.")


def _into_window(event: Draft, run: Run) -> None:
    """A run is charged to the window in which its attempt starts: move the reservation there, or wait."""
    if run.budget_window_at is None or not run.reserved_gpu_ms:
        return
    moved = ledger.move(
        event, unit=Unit.GPU_MS, reserved=run.reserved_gpu_ms, run_id=run.pk, run_label=run.name, window_start=run.budget_window_at,
        now=timezone.now(),
    )  # fmt: skip
    if moved != run.budget_window_at:
        event.change(run, budget_window_at=moved)


def _take_slots(engine: Engine, attempt: Attempt, slots: int) -> None:
    """Hold places on the engine, which all workspaces share. One attempt holds one row a slot; the row lock on the engine makes it exact."""
    locked = Engine.objects.select_for_update().get(pk=engine.pk)
    taken = set(EngineSlot.objects.filter(engine=locked).values_list("number", flat=True))
    free = [number for number in range(locked.slots) if number not in taken][:slots]
    if len(free) < slots:
        raise Refusal(
            f"{locked.slug} has {len(taken)} of {locked.slots} places taken, some by other workspaces; it starts when one is free."
        )
    EngineSlot.objects.bulk_create([EngineSlot(engine=locked, number=number, attempt_id=attempt.pk) for number in free])


def _close(event: Draft, run: Run, attempt: Attempt, ended: Exit, status: AttemptStatus) -> None:
    """Record the end of an attempt and what it cost; free its slots and end its token."""
    started_at, ended_at = ended.started_at, max(ended.ended_at, ended.started_at)
    milliseconds = -(-int((ended_at - started_at) * 1_000_000) // 1000)
    used = milliseconds * run.slots * run.pool.milli_gpu_per_slot // 1000 if ended.reason != "not_started" else 0
    event.change(
        attempt,
        status=status,
        started_at=attempt.started_at or (datetime.fromtimestamp(started_at, UTC) if used else None),
        ended_at=datetime.fromtimestamp(ended_at, UTC),
        exit_code=ended.code,
        exit_signal=ended.signal,
        exit_reason=ended.reason[:40],
        peak_memory_bytes=ended.peak_memory_bytes,
        cpu_ms=int(ended.cpu_seconds * 1000) if ended.cpu_seconds is not None else None,
    )
    event.change(run, spent_gpu_ms=run.spent_gpu_ms + used, started_at=run.started_at or attempt.started_at)
    EngineSlot.objects.filter(attempt_id=attempt.pk).delete()
    for run_token in Token.objects.filter(pk=token_id(attempt), revoked_at=None):
        event.change(run_token, revoked_at=timezone.now())


def _requeue(event: Draft, run: Run) -> None:
    event.change(run, status=RunStatus.QUEUED, queued_at=timezone.now())
    enqueue(event, run=run)


def _keep(event: Draft, run: Run, entry: Collected) -> Artifact:
    blob = keep_blob(event, entry.sha256, entry.bytes, is_bound=False)
    artifact = Artifact.objects.create(
        run=run, path=entry.path, name=entry.name[:250], kind=entry.kind[:40], metadata=entry.metadata, blob=blob
    )
    event.created(artifact)
    return artifact


def _evaluate(event: Draft, run: Run, scores: tuple[Score, ...]) -> None:
    """Record the scores that a run reported on benchmarks of this workspace, under the contract version that it was launched with."""
    unknown: list[str] = []
    latest = {(score.benchmark, score.metric): score for score in scores}
    for score in latest.values():
        try:
            benchmark = Benchmark.objects.find(score.benchmark)
        except NotFound:
            unknown.append(score.benchmark[:80])
            continue
        own = benchmark.pk == run.benchmark_id
        contract = run.contract if own else Contract.objects.filter(benchmark=benchmark).order_by("-version").first()
        if contract is None:
            unknown.append(score.benchmark[:80])
            continue
        subject = run.inputs.filter(kind="artifact").first()
        evaluation = Evaluation.objects.create(
            run=run, benchmark=benchmark, contract=contract, metric=score.metric, value=score.value, standard_error=score.stderr,
            samples=score.samples, subject_artifact=subject.artifact if subject else None,
        )  # fmt: skip
        event.created(evaluation)
    if unknown:
        event.details["scores_on_unknown_benchmarks"] = unknown[:20]


def _words(ended: Exit, code: str) -> str:
    words = {
        "exit_code": f"The program ended with exit code {ended.code}.",
        "signal": f"The program was ended by signal {ended.signal}.",
        "wall_limit": "The wall limit was reached.",
        "ended_without_done": "The program ended without saying that it was done.",
        "budget_exceeded": f"The run's {ended.reason.replace('_', ' ')} was reached.",
        "launcher_lost": "The process that watched over the run was lost, and no try is left.",
    }
    return words.get(code, "")
