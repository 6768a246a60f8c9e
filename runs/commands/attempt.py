"""The life of an attempt, as labsite's own jobs move it: claimed, running, ended once. Every command locks the run and checks its status.

What its run becomes of it is in `runs/commands/ending.py`."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.models import QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from runs import queue
from runs.commands.move import move
from runs.commands.run import charges, end
from runs.lifecycle import OPEN_ATTEMPTS, AttemptStatus, RunStatus
from runs.models import Attempt, QueueItem, Run, Watch
from runs.pools.base import Exit
from runs.queries.at_once import at_work
from runs.queries.claim import is_first
from runs.queries.hold import holds
from runs.queries.order import TOKEN_SLACK, token_id, token_secret
from runs.queries.ours import key_of
from runs.queries.start import STARTS_BY, Grounds, conditions, rooms, slots_taken, with_grounds
from runs.start import Waits
from workspaces import ids, kept_query, kept_write, ledger, scope, standings
from workspaces.access import Actor, Kind, Permission, rights_of, rights_questions
from workspaces.accounts import ledger_lock
from workspaces.audit import Draft, Refusal, command
from workspaces.commands import approval
from workspaces.commands.secret import forget_values
from workspaces.models import Engine, EngineSlot, Installation, Pool, Token, Workspace
from workspaces.queries.token import hash_secret
from workspaces.verbs import Verb

FIRST_FENCE = 1  # of the lease that whoever claims a run has of its attempt


class NotYet(Refusal):
    """The run may not start now; `waits` says why, and whom that holds back besides it."""

    def __init__(self, waits: Waits) -> None:
        super().__init__(waits.words)
        self.waits = waits


class TakenOver(Refusal):
    """Whoever says this held the attempt once; another one holds it by now."""


@dataclass(frozen=True, slots=True)
class Locked:
    """An attempt, its run, and what ends with it, under their locks. `tokens`: that of the attempt, unless it was taken back. `newest`: the
    number of the run's last attempt."""

    run: Run
    attempt: Attempt
    watch: Watch
    tokens: list[Token]
    newest: int


@command(Verb.ATTEMPT_STARTED, needs=None, by_system=True)
def start_attempt(event: Draft, *, actor: Actor, run: Run, holder: str = "") -> Attempt:
    """Claim a queued run for its pool: a slot of the pool and of the engine, room under the limit of runs at once, budget of this window.
    `holder` has the attempt's lease under `FIRST_FENCE`.

    Raises NotYet with what it waits for, Refusal where it has moved on, DoesNotFit where its window has no room; then nothing has changed.
    """
    if not is_first(run.pk):
        raise Refusal(f"Another dispatcher is about to start {run.name}.")
    begins = timezone.now()
    # The engine's row is locked: its places hold until the commit.
    [event.ledger], [found], items, [pool], taken, before, [(epoch, now)] = kept_query.ask_together(
        [
            ledger_lock(),
            kept_query.Question(_waiting, (), {"key": run.pk}),
            kept_query.question(QueueItem, run=run, locks=("self",)),
            kept_query.question(Pool, pk=run.pool_id, related=("engine", "closed_by"), locks=("engine",)),
            kept_query.Question(_taken_beside, (), {"pool": run.pool_id}),
            kept_query.question(Attempt, run=run, order_by=("-number",), limit=1),
            kept_query.Question(_epoch_and_instant, (), {}),
        ],
        ahead=_asked_later(run, begins),
    )
    if found.status != RunStatus.QUEUED or not items:
        raise Refusal(f"{found.name} is {found.get_status_display()} and waits for no pool.")
    if found.pool_id != pool.pk:
        raise Refusal(f"{found.name} was moved to another pool this moment.")
    run, [item] = found, items
    event.changing(run, item, as_read=True)
    _demand_start(run, pool, event.ledger, begins)
    _into_window(event, run)
    approval.void(event, subject_type="priority", subject_id=run.pk)  # it goes now: nobody needs to decide how soon
    event.about = run
    attempt_id = ids.uuid7()
    number = before[0].number + 1 if before else 1
    attempt = Attempt(id=attempt_id, run=run, pool=pool, number=number, key=key_of(epoch, attempt_id.hex), status=AttemptStatus.CREATED)
    writes = kept_write.Writes()
    writes.insert([attempt])
    writes.insert(_slots(pool.engine, {number for (number,) in taken}, attempt, run.slots))
    run_token = Token(
        id=token_id(attempt),
        kind=Token.Kind.RUN,
        holder_id=run.requested_by_id,
        name=run.name[:120],
        secret_hash=hash_secret(token_secret(attempt)),
        scopes=["run:write", "artifact:write", "memory:write"],
        run_id=run.pk,
        expires_at=timezone.now() + timedelta(seconds=run.wall_seconds) + TOKEN_SLACK,
    )
    writes.insert([run_token])
    lease_until = now + timedelta(seconds=Watch.LEASE_SECONDS)
    writes.insert([Watch(attempt=attempt, lease_until=lease_until, lease_holder=holder, lease_fence=FIRST_FENCE)])
    event.deleting(item)
    writes.delete(QueueItem, "id", item.pk)
    move(event, run, RunStatus.STARTING, beside=writes)
    event.last_writes = writes
    event.created(attempt, run_token)
    event.details["attempt"] = {"number": number, "key": attempt.key, "pool": pool.slug}
    return attempt


@command(Verb.ATTEMPT_RUNNING, needs=None, by_system=True, in_archive="running work comes to its end")
def mark_running(event: Draft, *, actor: Actor, attempt: Attempt, fence: int, started_at: datetime | None = None) -> Attempt:
    """The pool has it and its process lives."""
    held = _held(event, attempt, fence, locks_ledger=False)  # neither money nor a count changes: it waits for no admission
    run, attempt = held.run, held.attempt
    if attempt.status != AttemptStatus.CREATED:
        raise Refusal("The attempt has moved on.")
    now = timezone.now()
    event.changing(run, attempt, as_read=True)
    event.about = run
    until = now + timedelta(seconds=run.wall_seconds) + TOKEN_SLACK
    # One that waited long in its engine's queue needs its token for as long as any other.
    waited = [(token, {"expires_at": until}) for token in held.tokens if token.expires_at and token.expires_at < until - TOKEN_SLACK / 2]
    writes = kept_write.Writes()
    event.change_together((attempt, {"status": AttemptStatus.RUNNING, "started_at": started_at or now}), *waited, beside=writes)
    if run.status == RunStatus.STARTING:
        move(event, run, RunStatus.RUNNING, started_at=run.started_at or started_at or now, beside=writes)
    event.last_writes = writes
    return attempt


@command(Verb.ATTEMPT_ENDED, needs=None, by_system=True, in_archive="running work comes to its end")
def end_attempt(event: Draft, *, actor: Actor, attempt: Attempt, fence: int, ended: Exit, is_interrupted: bool = False) -> Run:
    """The confirmed end of an attempt: what it cost is known, its slots are free, its token ends. Its run ends once what it left has been
    collected (`finish_run`), which may take long and holds no place in the pool."""
    held = _held(event, attempt, fence)
    run, attempt = held.run, held.attempt
    if attempt.status not in OPEN_ATTEMPTS:
        raise Refusal("The end of this attempt is on record already.")
    event.about = run
    lost = AttemptStatus.LOST if ended.reason == "launcher_lost" else AttemptStatus.ENDED
    event.last_writes = close(event, held, ended, AttemptStatus.INTERRUPTED if is_interrupted else lost, is_left=True)
    event.details["exit"] = {"code": ended.code, "signal": ended.signal, "reason": ended.reason[:40]}
    queue.ring("collect_attempt", subject=scope.current_id())  # with all that wait: many ends, one bell
    queue.ring("dispatch_run", subject=scope.current_id())  # somebody may wait for its place
    return run


@command(Verb.ATTEMPT_FAILED_TO_START, needs=None, by_system=True, in_archive="running work comes to its end")
def fail_start(event: Draft, *, actor: Actor, attempt: Attempt, fence: int, reason: str) -> Run:
    """The pool could not start it, and bars a late start under its name: the run fails, what is left of its reservation is released."""
    held = _held(event, attempt, fence)
    run, attempt = held.run, held.attempt
    if attempt.status != AttemptStatus.CREATED:
        raise Refusal("The attempt has started meanwhile.")
    event.about = run
    now = timezone.now().timestamp()
    ended = Exit(code=None, signal=None, started_at=now, ended_at=now, reason="not_started", peak_memory_bytes=None, cpu_seconds=None)
    close(event, held, ended, AttemptStatus.ENDED).send()
    forget_values(attempt.key)  # nothing ran: nothing prints them
    if run.status == RunStatus.CANCELLING:
        end(event, run=run, status=RunStatus.CANCELLED, reason_code="cancelled")
    else:
        end(event, run=run, status=RunStatus.FAILED, reason_code="could_not_start", reason=reason)
    queue.ring("dispatch_run", subject=scope.current_id())  # somebody may wait for its place
    return run


# --- Pieces -------------------------------------------------------------------------------------------------------------------------------


def locked(event: Draft, attempt: Attempt, *, locks_ledger: bool = True) -> Locked:
    """The run, its attempt and its watch, locked; the ledger before them, as everywhere, so that no two commands wait for each other in a
    circle. What the run is just reporting is taken in before, or refused (runs/commands/report.py). A command that touches neither the ledger nor
    other runs can do without its lock."""
    questions = [
        kept_query.question(Run, pk=attempt.run_id, related=("agent_version", "pool", "requested_by"), locks=("self",)),
        kept_query.question(Attempt, pk=attempt.pk, locks=("self",)),
        kept_query.question(Watch, attempt=attempt, locks=("self",)),
        kept_query.question(Token, pk=token_id(attempt), revoked_at__isnull=True),
        kept_query.Question(_newest, (), {"run": attempt.run_id}),
    ]
    if locks_ledger:
        [event.ledger], *found = kept_query.ask_together([ledger_lock(), *questions])
    else:
        found = kept_query.ask_together(questions)
    [run], [attempt], [watch], tokens, [(newest,)] = found
    return Locked(run, attempt, watch, tokens, newest)


def _newest(run: Any) -> "QuerySet[Any, Any]":
    return Attempt.objects.filter(run=run).order_by("-number").values_list("number")[:1]


def _held(event: Draft, attempt: Attempt, fence: int, *, locks_ledger: bool = True) -> Locked:
    """As `locked`, for one who works on the attempt under a lease. Raises TakenOver where that is not the latest."""
    held = locked(event, attempt, locks_ledger=locks_ledger)
    if held.watch.lease_fence != fence:
        raise TakenOver(f"Lease {fence} of this attempt is over, lease {held.watch.lease_fence} holds.")
    return held


def _waiting(key: Any) -> "QuerySet[Run]":
    return with_grounds(Run.objects.select_for_update(of=("self",), no_key=True).select_related("requested_by").filter(pk=key))


def _asked_later(run: Run, now: datetime) -> list[kept_query.Question]:
    """What the start rule and the ledger ask of a run that starts in the week it was admitted in. Every workspace's starts and ends go through the
    ledger's lock one after the other, so that each round trip under it counts."""
    promised = [unit for unit, reserved, _ in charges(run) if reserved]
    return [
        *rights_questions(run.requested_by_id, scope.current_id()),
        at_work(),
        *standings.questions(now=now, units=STARTS_BY),
        holds(),
        slots_taken([run.pool_id]),
        *(question for unit in promised for question in ledger.questions(unit=unit, run_id=run.pk, window_start=run.budget_window_at)),
        approval.open_requests(subject_type="priority", subject_id=run.pk),
    ]


def _demand_start(run: Run, pool: Pool, workspace: Workspace, now: datetime) -> None:
    """Ask the start rule; the ledger's lock and the engine's make its counts hold."""
    rights = rights_of(Actor.of(run.requested_by), workspace.pk)
    asker = {run.requested_by_id} if rights.allows(Permission.LAUNCH_RUN, Kind.RUN) else ()
    # Without what stands against windows that have begun since: on those the ledger decides, when it moves the reservation.
    held = replace(conditions(now, frozenset(asker), workspace=workspace), stops=[])
    waits = held.waits(run, Grounds.of(run), rooms([pool])[pool.pk])
    if waits is not None:
        raise NotYet(waits)


def _into_window(event: Draft, run: Run) -> None:
    """A run is charged to the window in which its attempt starts: carry every reservation there, or wait. What earlier attempts have used is
    charged to theirs."""
    if run.budget_window_at is None:
        return
    now = timezone.now()
    changed: dict[str, Any] = {}
    for unit, reserved, spent in charges(run):
        if reserved:
            carried = ledger.move(
                event, unit=unit, reserved=reserved, spent=spent, run_id=run.pk, run_label=run.name,
                window_start=run.budget_window_at, now=now,
            )  # fmt: skip
            changed |= {f"reserved_{unit}": carried.reserved, "budget_window_at": carried.starts_at}
    if changed.get("budget_window_at", run.budget_window_at) != run.budget_window_at:
        event.change(run, **changed)


def _epoch_and_instant() -> "QuerySet[Any, Any]":
    """The installation's epoch, and this instant by the database's clock, by which leases run."""
    return Installation.objects.filter(is_current=True).values_list("epoch", Now())


def _taken_beside(pool: Any) -> "QuerySet[Any, Any]":
    """Numbers of the places that are taken of a pool's engine."""
    return EngineSlot.objects.filter(engine__in=Pool.objects.filter(pk=pool).values("engine")).values_list("number")


def _slots(engine: Engine, taken: Collection[int], attempt: Attempt, slots: int) -> list[EngineSlot]:
    """Places on the engine, which all workspaces share: one row a slot. There are enough: its row is locked since they were counted."""
    free = [number for number in range(engine.slots) if number not in taken][:slots]
    return [EngineSlot(engine=engine, number=number, attempt_id=attempt.pk) for number in free]


def close(event: Draft, held: Locked, ended: Exit, status: AttemptStatus, *, is_left: bool = False) -> kept_write.Writes:
    """Record the end of an attempt and what it cost, at the rate that the run is frozen with; free its slots and end its token. `is_left`: to
    collectors, and whoever held its lease so far has nothing more to say. Whatever `held` has is as it was read. The caller sends the writes."""
    run, attempt, watch = held.run, held.attempt, held.watch
    event.changing(run, attempt, *held.tokens, as_read=True)
    api_micros = watch.api_spend_micros
    started_at, ended_at = ended.started_at, max(ended.ended_at, ended.started_at)
    milliseconds = -(-int((ended_at - started_at) * 1_000_000) // 1000)
    used = milliseconds * run.slots * run.frozen["pool"]["milli_gpu_per_slot"] // 1000 if ended.reason != "not_started" else 0
    began = attempt.started_at or (datetime.fromtimestamp(started_at, UTC) if used else None)
    of_attempt = {
        "status": status,
        "started_at": began,
        "ended_at": datetime.fromtimestamp(ended_at, UTC),
        "exit_code": ended.code,
        "exit_signal": ended.signal,
        "exit_reason": ended.reason[:40],
        "peak_memory_bytes": ended.peak_memory_bytes,
        "cpu_ms": int(ended.cpu_seconds * 1000) if ended.cpu_seconds is not None else None,
    }
    of_run = {
        "spent_gpu_ms": run.spent_gpu_ms + used,
        "spent_api_micros": run.spent_api_micros + api_micros,
        "started_at": run.started_at or began,
    }
    writes, now = kept_write.Writes(), timezone.now()
    writes.delete(EngineSlot, "attempt_id", attempt.pk)
    if is_left:
        watch.collecting_since, watch.collect_tries = now, 0
        watch.lease_until, watch.lease_holder, watch.lease_fence = None, "", watch.lease_fence + 1
        writes.update(watch, ["collecting_since", "collect_tries", "lease_until", "lease_holder", "lease_fence"])
    ends = ((one, {"revoked_at": now}) for one in held.tokens)
    event.change_together((attempt, of_attempt), (run, of_run), *ends, beside=writes)
    return writes
