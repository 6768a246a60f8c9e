"""From the queue to the pool: claim under locks, then call the pool outside any transaction, under a name that exists already."""

import uuid
from contextlib import suppress
from datetime import UTC, datetime

import structlog
from rq.timeouts import BaseTimeoutException

from runs.commands.attempt import AtLimit, NoRoom, fail_start, mark_running, start_attempt
from runs.jobs import lease
from runs.jobs.job import job
from runs.lifecycle import OPEN_ATTEMPTS
from runs.models import Attempt, QueueItem
from runs.place import place_of
from runs.pools.base import PoolError, Status
from runs.queries.order import order_of
from runs.reservation import GRACE_SECONDS
from workspaces import scope
from workspaces.access import Actor
from workspaces.audit import Refusal

log = structlog.get_logger(__name__)

BATCH = 50  # runs looked at in one ring; the clock rings again


@job
def dispatch_run(actor: Actor, run_id: uuid.UUID) -> None:
    """Start whatever may start, in the queue's order. On a full pool nothing passes the run that waits first; other pools go on."""
    full: set[uuid.UUID] = set()
    passed: set[uuid.UUID] = set()
    for _ in range(BATCH):
        waiting = QueueItem.objects.exclude(pool_id__in=full).exclude(pk__in=passed)
        item = waiting.select_related("run").order_by("-priority", "position_key").first()
        if item is None:
            return
        passed.add(item.pk)
        try:
            attempt = start_attempt(actor=actor, run=item.run)
        except NoRoom:
            full.add(item.pool_id)  # the page works out and shows what it waits for
            continue
        except AtLimit:
            return
        except Refusal:
            continue  # another dispatcher has it, or its budget's window has no room: those behind it may pass
        except BaseTimeoutException:
            raise
        except Exception:
            log.exception("run could not be started", run=item.run_id.hex)
            continue  # one bad row may not keep the others waiting; `doctor` names it
        try:
            submit(actor, attempt)
        except Refusal as moved_on:
            log.info("attempt moved on", attempt=attempt.key, reason=str(moved_on))
        finally:
            lease.release_open(attempt.pk)  # the watcher may look now


def submit(actor: Actor, attempt: Attempt) -> None:
    """Hand an attempt to its pool; said twice, it starts once. What cannot start for certain fails; what is unknown is left to the watch.

    Raises Refusal where the attempt has moved on meanwhile."""
    attempt = Attempt.objects.select_related("pool__engine", "run").get(pk=attempt.pk)
    if attempt.status not in OPEN_ATTEMPTS:
        return
    workspace = scope.current_id().hex
    try:
        place = place_of(attempt)
    except PoolError as error:
        fail_start(actor=actor, attempt=attempt, reason=f"The pool could not start it: {error.reason}.")  # nobody was asked: nothing runs
        return
    if attempt.cancel_asked_at is not None:
        with suppress(PoolError):  # the watch asks again
            place.cancel(workspace, attempt.key, grace_seconds=GRACE_SECONDS)
        return
    try:
        place.submit(order_of(attempt))
        seen = place.observe(workspace, attempt.key)
    except PoolError as error:
        log.warning("attempt not started", attempt=attempt.key, reason=error.reason)
        with suppress(PoolError):
            if place.observe(workspace, attempt.key).status == Status.MISSING:
                fail_start(actor=actor, attempt=attempt, reason=f"The pool could not start it: {error.reason}.")
        return
    if seen.status == Status.RUNNING or (seen.exit is not None and seen.exit.has_run):
        started_at = datetime.fromtimestamp(seen.exit.started_at, UTC) if seen.exit else None
        mark_running(actor=actor, attempt=attempt, started_at=started_at)
