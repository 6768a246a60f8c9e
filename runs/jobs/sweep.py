"""Once in a while, for each workspace: expire approvals, remove folders of ended attempts, free what nobody names."""

import uuid

from django.db.models import Q
from django.db.models.functions import Now
from django.utils import timezone

from runs.commands.approval import expire_approval
from runs.jobs.collect import remove_folder
from runs.jobs.job import job
from runs.models import QueueItem, Sweep, Watch
from runs.place import place_of
from runs.pools.base import PoolError
from runs.queries.collecting import collecting, kept_back
from runs.queue import ring
from workspaces.access import Actor
from workspaces.audit import Refusal
from workspaces.commands.blob import sweep_store
from workspaces.models import Approval

FOLDERS = 200  # removed in one sweep


@job
def sweep_workspace(actor: Actor, workspace_id: uuid.UUID) -> None:
    waiting = QueueItem.objects.order_by("-priority", "position_key").first()
    if waiting is not None:
        ring("dispatch_run", subject=waiting.run_id)  # first: it is what somebody waits for
    sweep = Sweep.objects.filter(status=Sweep.Status.RUNNING).first()
    if sweep is not None:
        ring("advance_sweep", subject=sweep.pk)
    for approval in Approval.objects.filter(status=Approval.Status.PENDING, expires_at__lte=timezone.now()):
        try:
            expire_approval(actor=actor, approval=approval)
        except Refusal:
            continue  # decided meanwhile
    for attempt in kept_back().filter(Q(watches__lease_until=None) | Q(watches__lease_until__lt=Now()))[:FOLDERS]:
        ring("collect_attempt", subject=attempt.pk)  # what could not be collected at its end, perhaps can now
    remove_folders()
    sweep_store()


def remove_folders() -> None:
    """Remove what a watcher that died after an attempt's end has left in its pool."""
    left = Watch.objects.filter(attempt__ended_at__isnull=False).exclude(observed__in=(Watch.FOLDER_REMOVED, Watch.FOLDER_KEPT))
    left = left.exclude(attempt__in=collecting())
    for watch in left.select_related("attempt__pool__engine", "attempt__run")[:FOLDERS]:
        try:
            place = place_of(watch.attempt)
        except PoolError:
            continue
        remove_folder(place, watch.attempt)
