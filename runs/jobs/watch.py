"""Watching attempts: take in what they write, see whether they live, and record their end once. Level-triggered: each ring looks at the truth.

One attempt may not keep the others from being watched: what goes wrong with it is logged, noted on its watch, and tried again at the next ring.
Nor may one engine: each has lanes of its own (`runs/jobs/lanes.py`).
"""

import time
import uuid
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial

import structlog
from django.utils import timezone

from runs import ingest
from runs.commands.attempt import end_attempt, mark_running
from runs.jobs import lanes, lease
from runs.jobs.collect import keep_lines
from runs.jobs.dispatch import give_up, start_again
from runs.jobs.job import job
from runs.jobs.lease import Lease
from runs.lifecycle import OPEN_ATTEMPTS, AttemptStatus
from runs.models import Attempt, Run, Watch
from runs.place import place_of
from runs.pools.base import Exit, Observation, Pool, PoolError, Status
from runs.queries.hold import queue_hold
from runs.reservation import GRACE_SECONDS
from workspaces import kept_query, kept_write, ledger, scope
from workspaces.access import Actor
from workspaces.audit import Refusal
from workspaces.models import Unit

log = structlog.get_logger(__name__)

MISSING_GRACE_SECONDS = 15
PATIENCE_SECONDS = 900  # so long a pool that answers is asked anew to start what it does not know
UNSEEN_SECONDS = 120  # nobody looked when its patience ended: what was asked before that counts no more


@job
def watch_attempts(actor: Actor, subject_id: uuid.UUID) -> None:
    """Look at every open attempt of the workspace that nobody else is working on, each in its engine's lane."""
    workspace_id = scope.current_id()
    engines = Attempt.objects.filter(status__in=sorted(OPEN_ATTEMPTS)).order_by().values_list("pool__engine", flat=True).distinct()
    for engine_id in engines:
        lanes.put(lanes.Work.WATCH, engine_id, workspace_id, partial(watch_engine, actor, workspace_id, engine_id))


def watch_engine(actor: Actor, workspace_id: uuid.UUID, engine_id: uuid.UUID) -> None:
    """Look at the workspace's open attempts on one engine."""
    with scope.open_workspace(workspace_id):
        open_attempts = Attempt.objects.filter(status__in=sorted(OPEN_ATTEMPTS), pool__engine=engine_id).order_by("created_at")
        for key in list(open_attempts.values_list("pk", flat=True)):
            held = lease.take(key, is_collecting=False)
            if held is not None:
                _look(actor, held)


def _look(actor: Actor, held: Lease) -> None:
    key = held.attempt_id
    with lease.until_done(held):
        try:
            attempt, watch = _attempt(key)
            look(actor, attempt, watch, held.fence)
        except Refusal as moved_on:
            log.info("attempt moved on", attempt=key.hex, reason=str(moved_on))
        except PoolError as silent:  # it answered the first question, and not the next
            _note_unknown(held, silent.reason)
        except Exception as fault:
            log.exception("attempt could not be looked at", attempt=key.hex)
            _note_unknown(held, f"labsite could not take in what it found: {type(fault).__name__}; the watcher's log has more")


def _note_unknown(held: Lease, reason: str) -> None:
    Watch.objects.filter(attempt=held.attempt_id, lease_fence=held.fence).update(observed=Status.UNKNOWN, observed_reason=reason[:300])


def _attempt(key: uuid.UUID) -> tuple[Attempt, Watch]:
    [attempt], [watch] = kept_query.ask_together(
        [kept_query.question(Attempt, pk=key, related=("pool__engine", "run")), kept_query.question(Watch, attempt=key)]
    )
    return attempt, watch


def look(actor: Actor, attempt: Attempt, watch: Watch, fence: int) -> None:
    """One look at one attempt, under a lease."""
    if attempt.status not in OPEN_ATTEMPTS:
        return  # ended while we waited for our turn
    workspace = scope.current_id().hex
    try:
        place = place_of(attempt)
        seen = place.observe(workspace, attempt.key)
    except PoolError as error:
        place, seen = None, Observation(Status.UNKNOWN, reason=error.reason)
    if not _note(watch, fence, seen):
        return  # its end was put on record while we looked, or another one has taken it over
    if place is None or seen.status == Status.UNKNOWN:
        return  # unknown changes nothing: neither status nor reservation, and nothing is submitted again
    if seen.status == Status.EXITED and seen.exit is not None:
        _finish(actor, place, attempt, watch, fence, believable(seen.exit, attempt))
    elif seen.status == Status.MISSING:
        _missing(actor, place, attempt, fence, watch)
    else:
        _follow(actor, place, attempt, watch, fence, seen)


def _follow(actor: Actor, place: Pool, attempt: Attempt, watch: Watch, fence: int, seen: Observation) -> None:
    """It lives: carry a cancel to it, read on, stop it where its spend has reached the limit."""
    if attempt.cancel_asked_at is not None:
        place.cancel(scope.current_id().hex, attempt.key, grace_seconds=GRACE_SECONDS)
    elif seen.status == Status.PENDING and seen.native:
        return  # its engine has it in a queue of its own
    elif seen.status == Status.PENDING:
        start_again(actor, attempt)  # staged, and whoever staged it died before the start; where it starts just now, this does nothing
        return
    if seen.status == Status.RUNNING and attempt.status != AttemptStatus.RUNNING:
        mark_running(actor=actor, attempt=attempt, fence=fence)
    ingest.read_metrics(place, attempt, watch)
    ingest.read_events(place, attempt, watch)
    ingest.read_samples(place, attempt, watch)
    [watch] = kept_query.rows(Watch, attempt=attempt)  # with what the lines have said of spend
    if has_spent_all(attempt.run, watch):
        place.cancel(scope.current_id().hex, attempt.key, grace_seconds=GRACE_SECONDS)


def _finish(actor: Actor, place: Pool, attempt: Attempt, watch: Watch, fence: int, ended: Exit) -> None:
    """Its end is confirmed: take in the rest of its lines, perhaps over several looks, and record it. What it left is collected by
    another job: it may take minutes, and the others want to be watched."""
    if not keep_lines(place, attempt, watch):
        return
    if attempt.status != AttemptStatus.RUNNING and ended.has_run and ended.reason != "launcher_lost":
        mark_running(actor=actor, attempt=attempt, fence=fence, started_at=datetime.fromtimestamp(ended.started_at, UTC))
    if ended.reason == "cancelled" and attempt.cancel_asked_at is None:
        [watch] = kept_query.rows(Watch, attempt=attempt)
        if not has_spent_all(attempt.run, watch):
            # Nobody here asked for it: labsite that was stopped before it could say so, the machine going down, an engine that took it out of
            # its own queue, however long it had waited there.
            end_attempt(actor=actor, attempt=attempt, fence=fence, ended=ended, is_interrupted=True)
            return
        ended = replace(ended, reason="foreign_spend" if watch.has_foreign_spend else "spend_limit")
    end_attempt(actor=actor, attempt=attempt, fence=fence, ended=ended)


def believable(ended: Exit, attempt: Attempt) -> Exit:
    """An end as it can have been: after its attempt was made, and not in the future."""
    return ended.within(attempt.created_at.timestamp(), time.time())


def _missing(actor: Actor, place: Pool, attempt: Attempt, fence: int, watch: Watch) -> None:
    """The pool answers and knows nothing of it. Never started: start it under the same name. Started once: after the grace it counts as lost."""
    now = timezone.now()
    since = watch.missing_since or now
    if attempt.status == AttemptStatus.CREATED:
        waited = (now - since).total_seconds()
        if attempt.cancel_asked_at is not None:
            place.cancel(scope.current_id().hex, attempt.key, grace_seconds=GRACE_SECONDS)  # bars a late start; the next look sees the end
        elif queue_hold() is not None:
            # Whoever holds the queue may do so because the database is older than what happened (`manage.py restored`): it may have run already.
            held_back = {"missing_since": None, "observed_reason": "The queue is held; it is handed to its pool once that is over."}
            Watch.objects.filter(attempt=attempt, lease_fence=fence).update(**held_back)
        elif PATIENCE_SECONDS < waited < PATIENCE_SECONDS + UNSEEN_SECONDS:
            said = f" {watch.observed_reason}" if watch.observed_reason else ""
            give_up(actor, place, attempt, fence, f"The pool could not start it, however often it was asked.{said}")
        else:
            if waited >= PATIENCE_SECONDS:
                Watch.objects.filter(attempt=attempt, lease_fence=fence).update(missing_since=now)
            start_again(actor, attempt)
        return
    if now - since > timedelta(seconds=MISSING_GRACE_SECONDS):
        last = (watch.observed_at or since).timestamp()
        started = attempt.started_at.timestamp() if attempt.started_at else last
        ended = Exit(
            code=None, signal=None, started_at=started, ended_at=last, reason="launcher_lost", peak_memory_bytes=None, cpu_seconds=None
        )
        end_attempt(actor=actor, attempt=attempt, fence=fence, ended=ended)


def has_spent_all(run: Run, watch: Watch) -> bool:
    """Has the run reported all the spend on outside interfaces that was reserved for it? Without a reservation any spend is too much, and so is
    spend that cannot be counted."""
    if watch.has_foreign_spend:
        return True
    before = run.spent_api_micros - ledger.entered(Unit.API_MICROS, run.pk) if run.spent_api_micros else 0  # a past week bears the rest
    spent = before + watch.api_spend_micros
    return spent >= run.reserved_api_micros if run.reserved_api_micros else spent > 0


def _note(watch: Watch, fence: int, seen: Observation) -> bool:
    """Write down what was seen; False where the attempt's end is on record by now, or another one works on it: then it is not ours to say."""
    now = timezone.now()
    missing = seen.status == Status.MISSING
    watch.missing_since = (watch.missing_since or now) if missing else None
    waits = {watch.observed, seen.status.value} <= {Status.MISSING.value, Status.PENDING.value} and not seen.native
    watch.observed_reason = seen.reason[:300] or (watch.observed_reason if waits else "")  # why it could not start holds until it does
    watch.observed = seen.status.value
    if seen.status not in (Status.MISSING, Status.UNKNOWN, Status.EXITED):  # an end whose lines cannot be read must not look alive for good
        watch.observed_at = now
    noted, writes = ("missing_since", "observed", "observed_reason", "observed_at"), kept_write.Writes()
    writes.change(Watch, {name: getattr(watch, name) for name in noted}, id=watch.pk, lease_fence=fence)
    writes.send()
    return bool(writes.changed)
