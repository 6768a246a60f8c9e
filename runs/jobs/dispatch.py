"""From the queue to the pool: claim under locks, then call the pool outside any transaction, under a name that exists already."""

import uuid
from datetime import UTC, datetime

import structlog

from runs.commands.attempt import fail_start, mark_running, start_attempt
from runs.jobs.job import job
from runs.models import Attempt, QueueItem, Watch
from runs.place import place_of
from runs.pools.base import PoolError, Status
from runs.queries.order import order_of
from workspaces import scope
from workspaces.access import Actor
from workspaces.audit import Refusal
from workspaces.models import Engine

log = structlog.get_logger(__name__)

BATCH = 50  # runs looked at in one ring; the clock rings again


@job
def dispatch_run(actor: Actor, run_id: uuid.UUID) -> None:
    """Start whatever may start, in the queue's order; a run that must wait lets those behind it, on other pools, pass."""
    full: set[uuid.UUID] = set()
    for item in QueueItem.objects.select_related("run").order_by("-priority", "position_key")[:BATCH]:
        if item.pool_id in full:
            continue
        try:
            attempt = start_attempt(actor=actor, run=item.run)
        except Refusal:
            full.add(item.pool_id)  # the page works out and shows what it waits for
            continue
        try:
            submit(actor, attempt)
        finally:
            Watch.objects.filter(attempt=attempt).update(lease_until=None)  # the watcher may look now


def submit(actor: Actor, attempt: Attempt) -> None:
    """Hand an attempt to its pool; said twice, it starts once. What cannot start for certain fails; what is unknown is left to the watch."""
    attempt = Attempt.objects.select_related("pool__engine").get(pk=attempt.pk)
    workspace = scope.current_id().hex
    try:
        place = place_of(attempt.pool)
        place.submit(order_of(attempt))
    except PoolError as error:
        log.warning("attempt not started", attempt=attempt.key, reason=error.reason)
        if _is_missing(attempt):
            fail_start(actor=actor, attempt=attempt, reason=f"The pool could not start it: {error.reason}.")
        return
    seen = place.observe(workspace, attempt.key)
    if seen.status in (Status.RUNNING, Status.EXITED):
        started_at = datetime.fromtimestamp(seen.exit.started_at, UTC) if seen.exit else None
        mark_running(actor=actor, attempt=attempt, started_at=started_at)


def _is_missing(attempt: Attempt) -> bool:
    """Is it certain that nothing of this attempt runs?"""
    try:
        return bool(place_of(attempt.pool).observe(scope.current_id().hex, attempt.key).status == Status.MISSING)
    except PoolError:
        return bool(attempt.pool.engine.kind == Engine.Kind.LOCAL)
