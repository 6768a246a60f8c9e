"""Giving up a run whose pool does not answer: an operator's decision with a reason (decision 9), since `unknown` by itself never ends a run."""

from datetime import timedelta

from django.utils import timezone

from runs import queue
from runs.commands.attempt import close, locked
from runs.commands.run import end
from runs.lifecycle import OPEN_ATTEMPTS, AttemptStatus, RunStatus
from runs.models import Attempt, Run, Watch
from runs.pools.base import Exit, Status
from runs.queries.order import seconds_left
from workspaces import scope
from workspaces.access import Actor, Kind, Permission, Rights
from workspaces.audit import Draft, Refusal, command
from workspaces.models import AuditEvent
from workspaces.verbs import Verb

SILENCE_SECONDS = 60  # so long a pool must have been silent about an attempt before it may be given up


def may_declare_lost(rights: Rights, run: Run) -> bool:
    """Would `declare_lost` be carried out now, given a reason? Pages that offer it ask this."""
    return rights.allows(Permission.MANAGE_QUEUE, Kind.RUN) and not _why_not(run, _open_attempt(run))


@command(Verb.RUN_DECLARED_LOST, needs=Permission.MANAGE_QUEUE, kind=Kind.RUN, in_archive="running work comes to its end")
def declare_lost(event: Draft, /, *, actor: Actor, run: Run, reason: str) -> Run:
    """End a run whose pool has been silent about it for a minute: `lost`, or `cancelled` where that was asked for. Nothing tries it again.

    It is charged until now, at most for the time that it had; its places are free although its program may still run. Where the pool answers
    again, what the program left is collected as of any run that ended without all of its files. Refusal where the pool answers.
    """
    reason = reason.strip()
    if not reason:
        raise Refusal("Say why it is given up; whoever asked for this run will read it.", field="reason")
    attempt = _open_attempt(run)
    held = locked(event, attempt) if attempt is not None else None
    if held is not None:
        run, attempt = held.run, held.attempt
    why_not = _why_not(run, attempt)
    if attempt is None or held is None or why_not:
        raise Refusal(why_not)
    event.about = run
    event.reason = reason[:1000]
    started_at = attempt.started_at or attempt.created_at
    ended_at = min(timezone.now(), started_at + timedelta(seconds=max(0, seconds_left(run))))
    ended = Exit(
        code=None, signal=None, started_at=started_at.timestamp(), ended_at=ended_at.timestamp(), reason="launcher_lost",
        peak_memory_bytes=None, cpu_seconds=None,
    )  # fmt: skip
    close(event, held, ended, AttemptStatus.LOST, is_left=True).send()
    # What it leaves there is not thrown away: collected once the pool answers again (`kept_back`).
    Watch.objects.filter(attempt=attempt).update(observed=Watch.FOLDER_KEPT)
    words = f"{actor.label} declared it lost, its pool did not answer; its program may still run there until its wall limit. Why: {reason}"
    status = RunStatus.CANCELLED if run.status == RunStatus.CANCELLING else RunStatus.LOST
    end(event, run=run, status=status, reason_code="declared_lost", reason=words)
    queue.ring("dispatch_run", subject=scope.current_id())  # somebody may wait for its place
    return run


@command(Verb.ATTEMPT_FOUND_ALIVE, needs=None, by_system=True, in_archive="running work comes to its end")
def record_orphan(event: Draft, *, actor: Actor, attempt: Attempt) -> Run:
    """Its pool still had an attempt whose end is on record, and was told to end it. Said once of each attempt; Refusal where that is done.

    The run keeps its status and what it was charged. What the attempt leaves is collected soon where its run still waits for it.
    """
    held = locked(event, attempt)
    run, attempt = held.run, held.attempt
    said = AuditEvent.objects.filter(verb=Verb.ATTEMPT_FOUND_ALIVE, subjects__object_id=attempt.pk)
    if attempt.status in OPEN_ATTEMPTS or said.exists():
        raise Refusal("The attempt is open, or its return is on record.")
    event.about = run
    event.changing(run, attempt)
    event.details["attempt"] = {"number": attempt.number, "key": attempt.key, "ended": attempt.ended_at}
    if run.is_terminal:
        words = f"Attempt {attempt.number} was found at work on {attempt.pool.slug} afterwards, and was ended there."
        event.change(run, reason=f"{run.reason} {words}".strip()[:1000])
    Watch.objects.filter(attempt=attempt, lease_holder="").update(lease_until=None)
    return run


# --- Pieces -------------------------------------------------------------------------------------------------------------------------------


def _open_attempt(run: Run) -> Attempt | None:
    return Attempt.objects.filter(run=run, status__in=sorted(OPEN_ATTEMPTS)).first()


def _why_not(run: Run, attempt: Attempt | None) -> str:
    """Why a run cannot be declared lost, whoever asks; empty where it can."""
    if attempt is None or attempt.status not in OPEN_ATTEMPTS:
        return f"{run.name} is {run.get_status_display()} and has no attempt on a pool that could be lost."
    watch = Watch.objects.get(attempt=attempt)
    if watch.observed != Status.UNKNOWN:
        return f"The pool answers about {run.name}: its attempt is {watch.observed} there, so it is not lost."
    silent = int((timezone.now() - (watch.observed_at or attempt.created_at)).total_seconds())
    if silent < SILENCE_SECONDS:
        return (
            f"The pool has been silent about {run.name} for {max(0, silent)} s; a run can be declared lost after {SILENCE_SECONDS} s. "
            f"Wait another {SILENCE_SECONDS - silent} s."
        )
    return ""
