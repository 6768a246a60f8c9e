"""Work that a pool still has and labsite has not: ended there. (What labsite has and its pool has not is `missing`, which the watch sees.)

A host that comes back may bring runs with it that were declared lost, or were taken for lost and tried again. Each minute every pool is asked what
may still run of this workspace. What bears the name of another installation, or of one that a copy of the database was made of, is not touched, and
what no attempt explains is not either: such strangers are kept with the pool's contact, for people.
"""

import re
import uuid
from datetime import timedelta
from functools import partial

import structlog
from django.utils import timezone

from runs import contact
from runs.commands.lost import record_orphan
from runs.jobs import lanes
from runs.jobs.job import job
from runs.lifecycle import OPEN_ATTEMPTS
from runs.models import Attempt
from runs.place import place_in, place_of
from runs.pools.base import PoolError
from runs.pools.scheduler import PREFIX
from runs.queries.ours import ours
from runs.queries.site import known_attempts
from runs.reservation import GRACE_SECONDS
from workspaces import scope
from workspaces.access import Actor
from workspaces.audit import Refusal
from workspaces.models import Pool

log = structlog.get_logger(__name__)

SETTLED_SECONDS = 30  # an end that is on record for so long has been seen by all who work on it
NAMED = re.compile(rf"{PREFIX}[A-Za-z0-9_-]{{1,100}}\Z", re.ASCII)  # as labsite names its attempts


@job
def find_orphans(actor: Actor, subject_id: uuid.UUID) -> None:
    """Ask each pool of the workspace, in its engine's lane."""
    workspace_id = scope.current_id()
    for pool_id, engine_id in Pool.objects.values_list("pk", "engine"):
        lanes.put(lanes.Work.ORPHANS, engine_id, pool_id, partial(_ask, actor, workspace_id, pool_id))


def _ask(actor: Actor, workspace_id: uuid.UUID, pool_id: uuid.UUID) -> None:
    with scope.open_workspace(workspace_id):
        pool = Pool.objects.select_related("engine").get(pk=pool_id)
        if not Attempt.objects.filter(pool=pool).exists():
            return
        try:
            living = place_in(pool, pool.isolation).living(workspace_id.hex)
        except PoolError as error:
            log.info("pool not asked for orphans", pool=pool.slug, reason=error.reason)
            contact.note_silence(pool, error.reason)
            return
        contact.note_answer(pool, strangers(living))
        for attempt in orphans(pool, living):
            _stop(actor, attempt)


def orphans(pool: Pool, living: list[str]) -> list[Attempt]:
    """Attempts of ours among the keys that have ended here and may still run there."""
    before = timezone.now() - timedelta(seconds=SETTLED_SECONDS)
    ended = Attempt.objects.filter(ours(), pool=pool, key__in=living, ended_at__lt=before)
    return list(ended.exclude(status__in=sorted(OPEN_ATTEMPTS)).select_related("pool__engine", "run").order_by("key"))


def strangers(living: list[str]) -> list[str]:
    """The keys that no attempt explains: of whichever workspace, since a scheduler lists the jobs of all. Of another epoch also those whose attempt
    has ended here, which nobody ends there."""
    keys = [key for key in living if NAMED.match(key)]
    with scope.open_site("a job of another workspace is no stranger to this installation"):
        known = known_attempts(keys)
    ended = Attempt.objects.filter(key__in=keys, ended_at__lt=timezone.now() - timedelta(seconds=SETTLED_SECONDS))
    left = set(ended.filter(~ours()).values_list("key", flat=True))
    return [key for key in keys if key not in known or key in left]


def _stop(actor: Actor, attempt: Attempt) -> None:
    try:
        place_of(attempt).cancel(scope.current_id().hex, attempt.key, grace_seconds=GRACE_SECONDS)
    except PoolError as error:
        log.warning("orphan not stopped", attempt=attempt.key, reason=error.reason)
        return
    try:
        record_orphan(actor=actor, attempt=attempt)
    except Refusal:
        return  # said when it was found first
