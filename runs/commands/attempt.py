"""The life of an attempt, as labsite's own jobs move it: claimed, running, ended once. Every command locks the run and checks its status.

What its run becomes of it is in `runs/commands/ending.py`."""

from datetime import UTC, datetime, timedelta

from django.db.models import Max
from django.db.models.functions import Now
from django.utils import timezone

from runs import queue
from runs.commands.move import move
from runs.commands.run import end
from runs.lifecycle import OPEN_ATTEMPTS, AttemptStatus, RunStatus
from runs.models import Attempt, QueueItem, Run, Watch
from runs.pools.base import Exit
from runs.queries.at_once import runs_at_once
from runs.queries.order import TOKEN_SLACK, token_id, token_secret
from workspaces import ids, ledger, scope
from workspaces.access import Actor
from workspaces.accounts import lock_ledger
from workspaces.audit import Draft, Refusal, command
from workspaces.models import Engine, EngineSlot, Installation, Pool, Token, Unit
from workspaces.queries.token import hash_secret
from workspaces.verbs import Verb

START_LEASE_SECONDS = 60  # how long a starter is left alone with its attempt; afterwards the watch takes it for dead


class NoRoom(Refusal):
    """The pool is full, or closed: nothing behind this run starts there now."""


class AtLimit(Refusal):
    """The workspace runs as many at once as it may: nothing starts now, on whichever pool."""


@command(Verb.ATTEMPT_STARTED, needs=None, by_system=True)
def start_attempt(event: Draft, *, actor: Actor, run: Run) -> Attempt:
    """Claim a queued run for its pool: a slot of the pool and of the engine, room under the limit of runs at once, budget of this window.

    Raises Refusal with what it waits for; then nothing has changed. NoRoom and AtLimit say that others would wait as well.
    """
    lock_ledger()
    run = Run.objects.select_for_update(no_key=True).get(pk=run.pk)
    item = QueueItem.objects.select_for_update(no_key=True).filter(run=run).first()
    if run.status != RunStatus.QUEUED or item is None:
        raise Refusal(f"{run.name} is {run.get_status_display()} and waits for no pool.")
    pool = Pool.objects.select_related("engine").get(pk=run.pool_id)
    _room(run, pool)
    _as_admitted(run, pool)
    _into_window(event, run)
    event.about = run
    attempt_id = ids.uuid7()
    number = (Attempt.objects.filter(run=run).aggregate(last=Max("number"))["last"] or 0) + 1
    epoch = Installation.objects.get(is_current=True).epoch
    attempt = Attempt.objects.create(
        id=attempt_id, run=run, pool=pool, number=number, key=f"lab-{epoch}-{attempt_id.hex}", status=AttemptStatus.CREATED
    )
    _take_slots(pool.engine, attempt, run.slots)
    Watch.objects.create(attempt=attempt, lease_until=Now() + timedelta(seconds=START_LEASE_SECONDS))
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
    move(event, run, RunStatus.STARTING)
    event.created(attempt, run_token)
    event.details["attempt"] = {"number": number, "key": attempt.key, "pool": pool.slug}
    return attempt


@command(Verb.ATTEMPT_RUNNING, needs=None, by_system=True)
def mark_running(event: Draft, *, actor: Actor, attempt: Attempt, started_at: datetime | None = None) -> Attempt:
    """The pool has it and its process lives."""
    run, attempt = locked(attempt)
    if attempt.status != AttemptStatus.CREATED:
        raise Refusal("The attempt has moved on.")
    now = timezone.now()
    event.changing(run)
    event.about = run
    event.change(attempt, status=AttemptStatus.RUNNING, started_at=started_at or now)
    if run.status == RunStatus.STARTING:
        move(event, run, RunStatus.RUNNING, started_at=run.started_at or started_at or now)
    return attempt


@command(Verb.ATTEMPT_ENDED, needs=None, by_system=True)
def end_attempt(event: Draft, *, actor: Actor, attempt: Attempt, ended: Exit, is_interrupted: bool = False) -> Run:
    """The confirmed end of an attempt: what it cost is known, its slots are free, its token ends. Its run ends once what it left has been
    collected (`finish_run`), which may take long and holds no place in the pool."""
    run, attempt = locked(attempt)
    if attempt.status not in OPEN_ATTEMPTS:
        raise Refusal("The end of this attempt is on record already.")
    event.changing(run)
    event.about = run
    lost = AttemptStatus.LOST if ended.reason == "launcher_lost" else AttemptStatus.ENDED
    close(event, run, attempt, ended, AttemptStatus.INTERRUPTED if is_interrupted else lost)
    event.details["exit"] = {"code": ended.code, "signal": ended.signal, "reason": ended.reason[:40]}
    Watch.objects.filter(attempt=attempt).update(collecting_since=Now(), collect_tries=0, lease_until=None)
    queue.ring("collect_attempt", subject=attempt.pk)
    queue.ring("dispatch_run", subject=scope.current_id())  # somebody may wait for its place
    return run


@command(Verb.ATTEMPT_FAILED_TO_START, needs=None, by_system=True)
def fail_start(event: Draft, *, actor: Actor, attempt: Attempt, reason: str) -> Run:
    """The pool refused and confirmed that nothing runs: the run fails, what is left of its reservation is released."""
    run, attempt = locked(attempt)
    if attempt.status != AttemptStatus.CREATED:
        raise Refusal("The attempt has started meanwhile.")
    event.changing(run)
    event.about = run
    now = timezone.now().timestamp()
    ended = Exit(code=None, signal=None, started_at=now, ended_at=now, reason="not_started", peak_memory_bytes=None, cpu_seconds=None)
    close(event, run, attempt, ended, AttemptStatus.ENDED)
    if run.status == RunStatus.CANCELLING:
        end(event, run=run, status=RunStatus.CANCELLED, reason_code="cancelled")
    else:
        end(event, run=run, status=RunStatus.FAILED, reason_code="could_not_start", reason=reason)
    return run


# --- Pieces -------------------------------------------------------------------------------------------------------------------------------


def locked(attempt: Attempt) -> tuple[Run, Attempt]:
    """The run and its attempt, locked; the ledger before them, as everywhere, so that no two commands wait for each other in a circle."""
    lock_ledger()
    run = Run.objects.select_for_update(of=("self",), no_key=True).select_related("agent_version", "pool").get(pk=attempt.run_id)
    return run, Attempt.objects.select_for_update(no_key=True).get(pk=attempt.pk)


def _room(run: Run, pool: Pool) -> None:
    busy = sum(Attempt.objects.filter(pool=pool, status__in=sorted(OPEN_ATTEMPTS)).values_list("run__slots", flat=True))
    if busy + run.slots > pool.slots:
        raise NoRoom(f"{pool.slug} has {busy} of {pool.slots} slots taken; it starts when one is free.")
    at_once = runs_at_once()
    if at_once.is_full:
        raise AtLimit(f"{at_once.words} It starts when one ends.")
    if not pool.is_accepting or not pool.engine.is_accepting:
        raise NoRoom(f"{pool.slug} takes no new work; it starts when the pool is opened again.")


def _as_admitted(run: Run, pool: Pool) -> None:
    """The pool must still be what the run was admitted on: a holdout that wanted isolation is not run without it because a pool was changed."""
    admitted = run.frozen["pool"]["isolation"]
    if pool.isolation != admitted:
        raise NoRoom(
            f"{pool.slug} now gives {pool.get_isolation_display()}, and the run was admitted on {Pool.Isolation(admitted).label}; "
            "it starts when the pool is as it was. Cancel it and launch again to run on the pool as it is."
        )


def _into_window(event: Draft, run: Run) -> None:
    """A run is charged to the window in which its attempt starts: move every reservation there, or wait."""
    if run.budget_window_at is None:
        return
    now, moved = timezone.now(), run.budget_window_at
    for unit, reserved in ((Unit.GPU_MS, run.reserved_gpu_ms), (Unit.API_MICROS, run.reserved_api_micros)):
        if reserved:
            moved = ledger.move(
                event, unit=unit, reserved=reserved, run_id=run.pk, run_label=run.name, window_start=run.budget_window_at, now=now
            ) or moved  # fmt: skip
    if moved != run.budget_window_at:
        event.change(run, budget_window_at=moved)


def _take_slots(engine: Engine, attempt: Attempt, slots: int) -> None:
    """Hold places on the engine, which all workspaces share. One attempt holds one row a slot; the row lock on the engine makes it exact."""
    locked = Engine.objects.select_for_update(no_key=True).get(pk=engine.pk)
    taken = set(EngineSlot.objects.filter(engine=locked).values_list("number", flat=True))
    free = [number for number in range(locked.slots) if number not in taken][:slots]
    if len(free) < slots:
        raise NoRoom(
            f"{locked.slug} has {len(taken)} of {locked.slots} places taken, some by other workspaces; it starts when one is free."
        )
    EngineSlot.objects.bulk_create([EngineSlot(engine=locked, number=number, attempt_id=attempt.pk) for number in free])


def close(event: Draft, run: Run, attempt: Attempt, ended: Exit, status: AttemptStatus) -> None:
    """Record the end of an attempt and what it cost, at the rate that the run is frozen with; free its slots and end its token."""
    api_micros = Watch.objects.values_list("api_spend_micros", flat=True).get(attempt=attempt)
    started_at, ended_at = ended.started_at, max(ended.ended_at, ended.started_at)
    milliseconds = -(-int((ended_at - started_at) * 1_000_000) // 1000)
    used = milliseconds * run.slots * run.frozen["pool"]["milli_gpu_per_slot"] // 1000 if ended.reason != "not_started" else 0
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
    event.change(
        run,
        spent_gpu_ms=run.spent_gpu_ms + used,
        spent_api_micros=run.spent_api_micros + api_micros,
        started_at=run.started_at or attempt.started_at,
    )
    EngineSlot.objects.filter(attempt_id=attempt.pk).delete()
    for run_token in Token.objects.filter(pk=token_id(attempt), revoked_at=None):
        event.change(run_token, revoked_at=timezone.now())
