"""Stored files that turned out, while they were read, to be other bytes than their name says: noted until the next tidying looks at them.

A note is a doorbell, not a record: a read writes no row. `recheck_files` (workspaces/commands/reconcile.py) reads what was noted and puts it
on record.
"""

import uuid

import redis
import structlog
from django.core.cache import cache

log = structlog.get_logger(__name__)

KEPT_SECONDS = 86_400
MOST = 200  # hashes of one workspace; those beyond come with the next read


def note_damage(region: str, workspace_id: uuid.UUID, sha256: str) -> None:
    """Say it in the log of the service, and have the next tidying look."""
    log.error("a stored file is damaged", region=region, workspace=workspace_id.hex, sha256=sha256)
    try:
        noted = noted_damage(workspace_id)
        if sha256 not in noted:
            cache.set(_key(workspace_id), [*noted, sha256][-MOST:], KEPT_SECONDS)
    except redis.RedisError as error:
        log.warning("damage not noted", error=type(error).__name__)  # the next read notes it


def noted_damage(workspace_id: uuid.UUID) -> list[str]:
    """Hashes that were noted in the last day."""
    return list(cache.get(_key(workspace_id), []))


def forget_damage(workspace_id: uuid.UUID) -> None:
    """They were looked at."""
    cache.delete(_key(workspace_id))


def _key(workspace_id: uuid.UUID) -> str:
    return f"damaged-{workspace_id.hex}"
