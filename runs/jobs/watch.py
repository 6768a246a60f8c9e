"""Watching attempts: take in what they write, see whether they live, and record their end once. Level-triggered: each ring looks at the truth."""

import uuid
from datetime import UTC, datetime, timedelta

import structlog
from django.db.models import Q
from django.utils import timezone

from runs import ingest
from runs.commands.attempt import finish_attempt, mark_running
from runs.jobs.collect import harvest, keep_lines
from runs.jobs.dispatch import submit
from runs.jobs.job import job
from runs.lifecycle import OPEN_ATTEMPTS, AttemptStatus
from runs.models import Attempt, Run, Watch
from runs.place import place_of
from runs.pools.base import Exit, Observation, Pool, PoolError, Status
from runs.queries.estimate import GRACE_SECONDS
from workspaces import scope
from workspaces.access import Actor
from workspaces.audit import Refusal

log = structlog.get_logger(__name__)

LEASE_SECONDS = 120  # longer than one look may take; a watcher that died is replaced after it
MISSING_GRACE_SECONDS = 15


@job
def watch_attempts(actor: Actor, subject_id: uuid.UUID) -> None:
    """Look at every open attempt of the workspace that nobody else is looking at."""
    open_attempts = Attempt.objects.filter(status__in=sorted(OPEN_ATTEMPTS)).select_related("pool__engine").order_by("created_at")
    for attempt in open_attempts:
        if not _lease(attempt):
            continue
        try:
            look(actor, attempt)
        except Refusal as moved_on:
            log.warning("attempt moved on", attempt=attempt.key, reason=str(moved_on))
        finally:
            Watch.objects.filter(attempt=attempt).update(lease_until=None)


def look(actor: Actor, attempt: Attempt) -> None:
    """One look at one attempt."""
    workspace = scope.current_id().hex
    try:
        place = place_of(attempt.pool)
        seen = place.observe(workspace, attempt.key)
    except PoolError as error:
        place, seen = None, Observation(Status.UNKNOWN, reason=error.reason)
    watch = _note(attempt, seen)
    if place is None or seen.status == Status.UNKNOWN:
        return  # unknown changes nothing: neither status nor reservation, and nothing is submitted again
    if seen.status == Status.EXITED and seen.exit is not None:
        _finish(actor, place, attempt, seen.exit)
    elif seen.status == Status.MISSING:
        _missing(actor, place, attempt, watch)
    else:
        _follow(actor, place, attempt, seen, watch)


def _follow(actor: Actor, place: Pool, attempt: Attempt, seen: Observation, watch: Watch) -> None:
    """It lives: read on, carry a cancel to it, stop it where its spend has reached the limit."""
    if seen.status == Status.RUNNING and attempt.status != AttemptStatus.RUNNING:
        mark_running(actor=actor, attempt=attempt)
    ingest.read_metrics(place, attempt)
    ingest.read_events(place, attempt)
    run = Run.objects.get(pk=attempt.run_id)
    watch.refresh_from_db()
    spent_out = bool(run.reserved_api_micros) and watch.api_spend_micros >= run.reserved_api_micros
    asked = Attempt.objects.values_list("cancel_asked_at", flat=True).get(pk=attempt.pk)
    if asked is not None or spent_out:
        place.cancel(scope.current_id().hex, attempt.key, grace_seconds=GRACE_SECONDS)
    elif seen.status == Status.PENDING and timezone.now() - attempt.created_at > timedelta(seconds=LEASE_SECONDS):
        submit(actor, attempt)  # staged, and whoever staged it died before the start


def _finish(actor: Actor, place: Pool, attempt: Attempt, ended: Exit) -> None:
    keep_lines(place, attempt)
    left = harvest(place, attempt)
    run = Run.objects.get(pk=attempt.run_id)
    if (
        ended.reason == "cancelled"
        and attempt.cancel_asked_at is None
        and run.reserved_api_micros
        and left.api_micros >= run.reserved_api_micros
    ):
        ended = Exit(**{**ended.__dict__, "reason": "spend_limit"})
    if attempt.status != AttemptStatus.RUNNING and ended.reason != "launcher_lost":
        mark_running(actor=actor, attempt=attempt, started_at=datetime.fromtimestamp(ended.started_at, UTC))
    finish_attempt(actor=actor, attempt=attempt, ended=ended, harvest=left)
    place.remove(scope.current_id().hex, attempt.key)


def _missing(actor: Actor, place: Pool, attempt: Attempt, watch: Watch) -> None:
    """The pool answers and knows nothing of it. Never started: start it under the same name. Started once: after the grace it counts as lost."""
    if attempt.status == AttemptStatus.CREATED:
        if attempt.cancel_asked_at is None:
            submit(actor, attempt)
        else:
            place.cancel(scope.current_id().hex, attempt.key, grace_seconds=GRACE_SECONDS)  # bars a late start; the next look sees the end
        return
    since = watch.missing_since or timezone.now()
    if timezone.now() - since > timedelta(seconds=MISSING_GRACE_SECONDS):
        last = (watch.observed_at or since).timestamp()
        started = attempt.started_at.timestamp() if attempt.started_at else last
        ended = Exit(
            code=None, signal=None, started_at=started, ended_at=last, reason="launcher_lost", peak_memory_bytes=None, cpu_seconds=None
        )
        finish_attempt(actor=actor, attempt=attempt, ended=ended, harvest=harvest(place, attempt))


def _lease(attempt: Attempt) -> bool:
    now = timezone.now()
    free = Watch.objects.filter(Q(lease_until=None) | Q(lease_until__lt=now), attempt=attempt)
    return bool(free.update(lease_until=now + timedelta(seconds=LEASE_SECONDS)))


def _note(attempt: Attempt, seen: Observation) -> Watch:
    watch = Watch.objects.get(attempt=attempt)
    now = timezone.now()
    missing = seen.status == Status.MISSING
    watch.missing_since = (watch.missing_since or now) if missing else None
    watch.observed, watch.observed_reason = seen.status, seen.reason[:300]
    if not missing:
        watch.observed_at = now
    watch.save(update_fields=["missing_since", "observed", "observed_reason", "observed_at"])
    return watch
