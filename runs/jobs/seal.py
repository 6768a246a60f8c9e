"""Job `seal_chain`: sign where a workspace's record stands, so that a later rewrite shows."""

import uuid

import structlog

from runs.jobs.job import job
from workspaces.access import Actor
from workspaces.queries.chain import Broken, seal

log = structlog.get_logger(__name__)


@job
def seal_chain(actor: Actor, workspace_id: uuid.UUID) -> None:
    """Add a checkpoint for the workspace. A broken chain is never signed; `verify` says where it breaks."""
    try:
        seal()
    except Broken as fault:
        log.error("record not sealed", workspace=workspace_id.hex, fault=str(fault))
