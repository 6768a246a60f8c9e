"""From the queue to the pool: claim under locks, then call the pool outside any transaction, under a name that exists already.

Claims are short and made one after the other; each claimed attempt is handed to its pool in its engine's lane (`runs/jobs/lanes.py`)."""

import uuid
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

import structlog
from django.db.models import Q
from django.utils import timezone
from rq.timeouts import BaseTimeoutException

from runs.commands.attempt import FIRST_FENCE, NotYet, fail_start, mark_running, start_attempt
from runs.commands.secret import hand_out
from runs.jobs import lanes, lease
from runs.jobs.demand import say_demand
from runs.jobs.job import job
from runs.jobs.lease import Lease
from runs.jobs.rest import Rest
from runs.lifecycle import OPEN_ATTEMPTS
from runs.models import Attempt, QueueItem, Watch
from runs.place import place_of
from runs.pools.base import NoAnswer, Pool, PoolError, Status
from runs.queries.order import order_of
from runs.queries.share import turns
from runs.queries.start import Grounds, conditions, launchers, rooms, with_grounds
from runs.reservation import GRACE_SECONDS
from runs.start import Holds, Room, Waits
from workspaces import kept_query, scope
from workspaces.access import Actor
from workspaces.audit import Refusal
from workspaces.sealing import BrokenSeal

log = structlog.get_logger(__name__)

HEAVY = ("run__frozen", "run__parameters")  # JSON columns make most of what a run's row weighs

HANDED_OVER = ("pool__engine", "run__agent_version", "run__benchmark")  # what an order is made of
REST = Rest(0.1)  # after a look that started nothing: launches that wait for a full pool ring by the dozen
BATCH = 50  # runs claimed in one ring; the clock rings again
PAGE = 50


@partial(job, rest=REST)
def dispatch_run(actor: Actor, subject_id: uuid.UUID) -> None:
    """Claim whatever may start, in the queue's order, however many wait before it for something of their own. What the queue then still asks
    of engines is said, so that other workspaces let it have its turn there."""
    wanted: dict[uuid.UUID, int] = {}
    try:
        if not _go_through(actor, wanted):
            REST.earn()
    finally:
        say_demand(wanted)


def _go_through(actor: Actor, wanted: dict[uuid.UUID, int]) -> int:
    """Go through the queue and claim; returns how many. `wanted` gets, by pool, the places that its next run asks of its engine in vain."""
    full: set[uuid.UUID] = set()
    claimed, after = 0, None
    now = conditions(timezone.now(), launchers())
    while page := _page(full, after):
        going_first = turns(item.pool.engine_id for item in page)
        room = rooms([item.pool for item in page], turns=going_first)
        for item in page:
            after = (item.priority, item.position_key)
            if item.pool_id in full:
                continue
            waits = now.waits(item.run, Grounds.of(item), room[item.pool_id]) or _claim(actor, item)
            if waits is None:
                claimed += 1
                if claimed == BATCH:
                    return claimed
                now, room = replace(now, at_once=now.at_once.with_one_more()), _with(item, room)
                continue
            if waits.wants_engine:
                wanted.setdefault(item.pool_id, item.run.slots)
            if waits.holds == Holds.ALL:
                return claimed
            if waits.holds == Holds.POOL:
                full.add(item.pool_id)
        if len(page) < PAGE:
            break
    return claimed


def _page(full: set[uuid.UUID], after: tuple[int, int] | None) -> list[Any]:
    """The next of the queue behind `after`, without those of pools that are full."""
    waiting = (
        QueueItem.objects.exclude(pool_id__in=full).select_related("run__requested_by", "pool__engine", "pool__closed_by").defer(*HEAVY)
    )
    if after is not None:
        priority, key = after
        waiting = waiting.filter(Q(priority__lt=priority) | Q(priority=priority, position_key__gt=key))
    return list(with_grounds(waiting, run="run").order_by("-priority", "position_key")[:PAGE])


def _with(item: QueueItem, room: dict[uuid.UUID, Room]) -> dict[uuid.UUID, Room]:
    """The room that is left with one more run; what others have taken or left meanwhile, the claim itself sees under its locks."""
    slots, engine = item.run.slots, item.pool.engine.slug
    return {
        pool: replace(
            one,
            taken=one.taken + (slots if pool == item.pool_id else 0),
            engine_taken=one.engine_taken + (slots if one.engine == engine else 0),
        )
        for pool, one in room.items()
    }


def _claim(actor: Actor, item: QueueItem) -> Waits | None:
    """Claim a run and have it handed to its pool; what it still waits for, or None where it was claimed."""
    run = item.run
    try:
        attempt = start_attempt(actor=actor, run=run, holder=lease.holder())
    except NotYet as not_yet:
        return not_yet.waits
    except Refusal as moved_on:
        return Waits(Holds.RUN, str(moved_on), "")  # another dispatcher has it, or its window has no room
    except BaseTimeoutException:
        raise
    except Exception as fault:
        log.exception("run could not be started", run=run.pk.hex)  # one bad row may not keep the others waiting
        return Waits(Holds.RUN, f"labsite could not start it: {type(fault).__name__}.", "The worker's log has more.", needs_somebody=True)
    held = lease.hold(attempt.pk, FIRST_FENCE)
    lanes.put(lanes.Work.START, item.pool.engine_id, attempt.pk, partial(_hand_over, actor, held))
    return None


def start_again(actor: Actor, attempt: Attempt) -> None:
    """Have an attempt handed to its pool that was claimed and has not started: whoever was to do so has died. Needs `pool` at hand."""
    workspace_id = scope.current_id()
    lanes.put(lanes.Work.START, attempt.pool.engine_id, attempt.pk, partial(_take_over, actor, workspace_id, attempt.pk))


def _take_over(actor: Actor, workspace_id: uuid.UUID, attempt_id: uuid.UUID) -> None:
    with scope.open_workspace(workspace_id):
        held = lease.take(attempt_id, is_collecting=False)
    if held is not None:
        _hand_over(actor, held)


def _hand_over(actor: Actor, held: Lease) -> None:
    with lease.not_beyond(held), scope.open_workspace(held.workspace_id), lease.until_done(held):  # then the watcher may look
        try:
            [attempt] = kept_query.rows(Attempt, pk=held.attempt_id, related=HANDED_OVER)
            submit(actor, attempt, held.fence)
        except Refusal as moved_on:
            log.info("attempt moved on", attempt=held.attempt_id.hex, reason=str(moved_on))
        except Exception:
            log.exception("attempt could not be handed to its pool", attempt=held.attempt_id.hex)


def submit(actor: Actor, attempt: Attempt, fence: int) -> None:
    """Hand an attempt to its pool; said twice, it starts once. What cannot start for certain fails; what is unknown is left to the watch.

    Raises Refusal where the attempt has moved on meanwhile, or another one has taken it over."""
    if attempt.status not in OPEN_ATTEMPTS:
        return
    workspace = scope.current_id().hex
    try:
        place = place_of(attempt)
    except NoAnswer as silent:
        _note_said(attempt, fence, f"It could not be started yet: {silent.reason}.")
        return
    except PoolError as error:
        # Whoever claimed it is the first to ask: nothing runs. Who was replaced may have asked before the key was revoked, or stand still with it
        # in memory, and the name cannot be barred: then nothing is said, and the watch looks again.
        if fence == FIRST_FENCE:
            fail_start(actor=actor, attempt=attempt, fence=fence, reason=f"The pool could not start it: {error.reason}.")
        return
    if attempt.cancel_asked_at is not None:
        with suppress(PoolError):  # the watch asks again
            place.cancel(workspace, attempt.key, grace_seconds=GRACE_SECONDS)
        return
    try:
        values = hand_out(attempt)
    except (Refusal, BrokenSeal) as refused:  # a secret that was there at admission may not be read any more
        reason = f"It could not start. {refused}"
        _note_said(attempt, fence, reason)
        give_up(actor, place, attempt, fence, reason)
        return
    try:
        place.submit(order_of(attempt, values))
    except NoAnswer as silent:
        log.warning("attempt not answered for", attempt=attempt.key, reason=silent.reason)
        _note_said(attempt, fence, f"It could not be started yet: {silent.reason}.")
        return
    except PoolError as error:
        log.warning("attempt not started", attempt=attempt.key, reason=error.reason)
        reason = f"The pool could not start it: {error.reason}."
        _note_said(attempt, fence, reason)
        give_up(actor, place, attempt, fence, reason)
        return
    try:
        seen = place.observe(workspace, attempt.key)
    except PoolError:
        return  # it was handed over, which no lost answer undoes
    if seen.status == Status.RUNNING or (seen.exit is not None and seen.exit.has_run):
        ended = None if seen.exit is None else seen.exit.within(attempt.created_at.timestamp(), timezone.now().timestamp())
        started_at = datetime.fromtimestamp(ended.started_at, UTC) if ended else None
        mark_running(actor=actor, attempt=attempt, fence=fence, started_at=started_at)


def _note_said(attempt: Attempt, fence: int, reason: str) -> None:
    """For the run's page: where the attempt can neither start nor be barred, it is tried again and again, and nothing else would say why."""
    Watch.objects.filter(attempt=attempt, lease_fence=fence).update(observed_reason=reason[:300])


def give_up(actor: Actor, place: Pool, attempt: Attempt, fence: int, reason: str) -> None:
    """Fail an attempt that could not be started, once its name is barred: whoever else is still staging it cannot start it any more. Where it
    cannot be barred, or runs after all, nothing changes, and the watch looks again."""
    workspace = scope.current_id().hex
    with suppress(PoolError):
        if place.observe(workspace, attempt.key).status not in (Status.MISSING, Status.PENDING, Status.EXITED):
            return
        place.cancel(workspace, attempt.key, grace_seconds=0)
        seen = place.observe(workspace, attempt.key)
        if seen.exit is not None and not seen.exit.has_run:
            fail_start(actor=actor, attempt=attempt, fence=fence, reason=reason)
