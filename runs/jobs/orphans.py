"""Work that a pool still has and labsite has not: ended there. (What labsite has and its pool has not is `missing`, which the watch sees.)

A host that comes back may bring runs with it that were declared lost, or were taken for lost and tried again. Each minute every pool is asked what
may still run of this workspace. What bears the name of another installation, or of one that a copy of the database was made of, is not touched.
"""

import uuid
from datetime import timedelta
from functools import partial

import structlog
from django.utils import timezone

from runs.commands.lost import record_orphan
from runs.jobs import lanes
from runs.jobs.job import job
from runs.lifecycle import OPEN_ATTEMPTS
from runs.models import Attempt
from runs.place import place_in, place_of
from runs.pools.base import PoolError
from runs.queries.ours import ours
from runs.reservation import GRACE_SECONDS
from workspaces import scope
from workspaces.access import Actor
from workspaces.audit import Refusal
from workspaces.models import Pool

log = structlog.get_logger(__name__)

SETTLED_SECONDS = 30  # an end that is on record for so long has been seen by all who work on it


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
            return
        for attempt in orphans(pool, living):
            _stop(actor, attempt)


def orphans(pool: Pool, living: list[str]) -> list[Attempt]:
    """Attempts of ours among the keys that have ended here and may still run there."""
    before = timezone.now() - timedelta(seconds=SETTLED_SECONDS)
    ended = Attempt.objects.filter(ours(), pool=pool, key__in=living, ended_at__lt=before)
    return list(ended.exclude(status__in=sorted(OPEN_ATTEMPTS)).select_related("pool__engine", "run").order_by("key"))


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
