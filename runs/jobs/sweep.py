"""Once in a while, for each workspace: ring lost bells, expire approvals, free what nobody names."""

import uuid

from django.utils import timezone

from runs.commands.approval import expire_approval
from runs.jobs.job import job
from runs.models import QueueItem
from runs.queue import ring
from workspaces import scope
from workspaces.access import Actor
from workspaces.audit import Refusal
from workspaces.commands.blob import sweep_store
from workspaces.models import Approval


@job
def sweep_workspace(actor: Actor, workspace_id: uuid.UUID) -> None:
    for approval in Approval.objects.filter(status=Approval.Status.PENDING, expires_at__lte=timezone.now()):
        try:
            expire_approval(actor=actor, approval=approval)
        except Refusal:
            continue  # decided meanwhile
    waiting = QueueItem.objects.order_by("-priority", "position_key").first()
    if waiting is not None:
        ring("dispatch_run", subject=waiting.run_id)
    # The store is walked once a day, in a minute of the workspace's own, so that not all are walked at once.
    now = timezone.now()
    if now.hour * 60 + now.minute == scope.current_id().int % 1440:
        sweep_store()
