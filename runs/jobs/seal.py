"""Job `seal_chain`: sign where a workspace's record stands, so that a later rewrite shows."""

import uuid

import structlog
from django.db import close_old_connections

from workspaces import scope
from workspaces.queries.chain import Broken, seal

log = structlog.get_logger(__name__)


def seal_chain(workspace_id: str, subject_id: str) -> None:
    """Add a checkpoint for the workspace (both ids are its own). A broken chain is never signed; `verify` says where it breaks."""
    close_old_connections()
    with scope.open_workspace(uuid.UUID(workspace_id)):
        try:
            seal()
        except Broken as fault:
            log.error("record not sealed", workspace=workspace_id, fault=str(fault))
