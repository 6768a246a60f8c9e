"""Carrying out what was cancelled by the hundred: runs that never started end in small batches, so that others get at the ledger between."""

import uuid

import structlog

from runs.commands.cancel_many import end_cancelled_runs
from runs.jobs.job import job
from runs.queries.cancelling import never_started
from workspaces.access import Actor
from workspaces.audit import Refusal

log = structlog.get_logger(__name__)

BATCH = 25  # runs ended in one transaction


@job
def end_cancelled(actor: Actor, subject_id: uuid.UUID) -> None:
    """End every run that is to be cancelled and has never started."""
    keys = list(never_started().order_by("pk").values_list("pk", flat=True))
    for first in range(0, len(keys), BATCH):
        try:
            end_cancelled_runs(actor=actor, runs=keys[first : first + BATCH])
        except Refusal as ended:
            log.info("runs ended meanwhile", reason=str(ended))
