"""Keeping tidy, once in a while for each workspace: expire approvals, remove folders of ended attempts, delete artifacts whose time is over, free
what nobody names, forget what was told long ago, count the ledger once a night, compare stored files with their rows once a day; once an hour for
each engine, remove what a killed labsite left half staged or half removed there."""

import uuid
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from functools import partial

import structlog
from django.core.cache import cache
from django.db.models import Q
from django.db.models.functions import Now
from django.utils import timezone

from runs.commands.approval import expire_approval
from runs.commands.artifact import AT_ONCE, delete_expired, keep_rested_on, remove_deleted
from runs.commands.policy_bell import ring_policies
from runs.jobs import lease
from runs.jobs.apart import apart
from runs.jobs.collect import remove_folder
from runs.jobs.dataset_import import tidy_imports
from runs.jobs.export import tidy_exports
from runs.jobs.job import job
from runs.jobs.keeper import LEFT_DAYS
from runs.models import Sweep, Watch
from runs.models.artifact import GRACE
from runs.place import place_in, place_of
from runs.pools.base import PoolError
from runs.queries import contract_check
from runs.queries.collecting import collecting, kept_back
from runs.queries.expired import expired, to_remove
from runs.queries.ours import ours
from runs.queries.overlap import has_work
from runs.queue import ring
from workspaces.access import Actor
from workspaces.audit import Refusal
from workspaces.commands.benchmark_copy import look_at_sources
from workspaces.commands.blob import tidy_store
from workspaces.commands.notification import forget_old
from workspaces.commands.reconcile import free_unnamed, recheck_files, reconcile_files
from workspaces.commands.recount import recount_if_due
from workspaces.commands.upload import tidy_uploads
from workspaces.models import Approval, Pool
from workspaces.store import StoreAway

log = structlog.get_logger(__name__)

FOLDERS = 200  # removed in one go
RETRY_SECONDS = 600  # for a folder that could not be removed
ENGINE_SECONDS = 3600
BARRED_SECONDS = 3600
RECONCILE_SECONDS = 86_400


@job
def tidy_workspace(actor: Actor, workspace_id: uuid.UUID) -> None:
    """Each step by itself: what one cannot do, such as a file that cannot be removed, keeps no other from being done."""
    steps: dict[str, Callable[[], object]] = {
        "sweeps": _ring_sweeps,
        "approvals": partial(expire_approvals, actor),
        "outputs": _ring_kept_back,
        "orphans": partial(ring, "find_orphans", subject=workspace_id),
        "contracts": partial(_ring_contracts, workspace_id),
        "policies": ring_policies,
        "overlap": partial(_ring_overlap, workspace_id),
        "folders": remove_folders,
        "engines": tidy_engines,
        "artifacts": partial(tidy_artifacts, actor),
        "files": partial(tidy_files, actor, workspace_id),
        "uploads": tidy_uploads,
        "exports": partial(tidy_exports, actor),
        "imports": tidy_imports,
        "sources": partial(look_at_sources, actor),
        "notifications": forget_old,
        "ledger": partial(recount_if_due, actor),
    }
    for name, step in steps.items():
        with apart(name):
            step()


def expire_approvals(actor: Actor) -> None:
    for approval in Approval.objects.filter(status=Approval.Status.PENDING, expires_at__lte=timezone.now()):
        with apart("approval", approval=approval.pk.hex), suppress(Refusal):  # decided meanwhile
            expire_approval(actor=actor, approval=approval)


def _ring_sweeps() -> None:
    sweep = Sweep.objects.filter(status=Sweep.Status.RUNNING).first()
    if sweep is not None:
        ring("advance_sweep", subject=sweep.pk)


def _ring_kept_back() -> None:
    for attempt in kept_back().filter(Q(watches__lease_until=None) | Q(watches__lease_until__lt=Now()))[:FOLDERS]:
        ring("collect_attempt", subject=attempt.pk)  # what could not be collected at its end, perhaps can now


def _ring_contracts(workspace_id: uuid.UUID) -> None:
    if contract_check.has_work(timezone.now()):
        ring("check_contracts", subject=workspace_id)


def _ring_overlap(workspace_id: uuid.UUID) -> None:
    if has_work():
        ring("check_overlap", subject=workspace_id)


def tidy_files(actor: Actor, workspace_id: uuid.UUID) -> None:
    """What no row names goes. Once a day rows that nothing names go too, and each other row's file is looked for. A store that does not answer keeps
    nothing else from being tidied; it is asked again at the next turn."""
    compared = f"reconciled-{workspace_id.hex}"
    try:
        tidy_store()
        recheck_files(actor)
        if cache.add(compared, 1, RECONCILE_SECONDS):
            with suppress(Refusal):  # an archive keeps all, and what is named by now stays
                free_unnamed(actor)
            reconcile_files(actor)
    except StoreAway as error:
        cache.delete(compared)
        log.warning("the store does not answer", error=str(error))


def tidy_artifacts(actor: Actor) -> None:
    """Delete those whose time is over, remove those that were deleted long ago; what something rests on stays. An archive keeps all."""
    now = timezone.now()
    due = expired(now, AT_ONCE)
    if due:
        with suppress(Refusal):  # something rests on each of them
            delete_expired(actor=actor, artifacts=due)
    for artifact in to_remove(now, GRACE, AT_ONCE):
        with suppress(Refusal):
            try:
                remove_deleted(actor=actor, artifact=artifact)
            except Refusal:
                keep_rested_on(actor=actor, artifact=artifact)


def remove_folders() -> None:
    """Remove what a watcher that died after an attempt's end has left in its pool, and what stayed there for long enough.
    What cannot be removed lets those behind it have their turn."""
    left = Watch.objects.filter(ours("attempt__key"), attempt__ended_at__isnull=False).exclude(
        observed__in=(Watch.FOLDER_REMOVED, Watch.FOLDER_KEPT)
    )
    # One that never started bars a start that may still be under way, until that must have ended.
    left = left.exclude(attempt__started_at=None, attempt__ended_at__gt=timezone.now() - timedelta(seconds=BARRED_SECONDS))
    left = left.exclude(observed=Watch.FOLDER_LEFT, observed_at__gt=timezone.now() - timedelta(days=LEFT_DAYS))
    left = left.filter(Q(lease_until=None) | Q(lease_until__lt=Now())).exclude(attempt__in=collecting())
    for watch in left.select_related("attempt__pool__engine", "attempt__run").order_by("attempt_id")[:FOLDERS]:
        lease.postpone(watch.attempt_id, RETRY_SECONDS)
        try:
            place = place_of(watch.attempt)
        except PoolError:
            continue
        remove_folder(place, watch.attempt)


def tidy_engines() -> None:
    """What the workspace's pools run on, at most once an hour: this machine over all workspaces, a folder on another host for its pool."""
    for pool in Pool.objects.select_related("engine").order_by("slug"):
        if not cache.add(f"tidied-{(pool.pk if pool.engine.host else pool.engine_id).hex}", 1, ENGINE_SECONDS):
            continue
        try:
            count = place_in(pool, pool.isolation).tidy()
        except PoolError as error:
            log.warning("engine not tidied", engine=pool.engine.slug, reason=error.reason)
            continue
        if count:
            log.info("engine tidied", engine=pool.engine.slug, folders=count)
