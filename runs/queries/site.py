"""Named site queries that cross workspaces: ids and counts by functions of the database, asked in a site scope only (contracts.md B)."""

import uuid
from dataclasses import dataclass

from django.db import connection

from runs.share import Share
from workspaces import scope


@dataclass(frozen=True, slots=True)
class Busy:
    """What a workspace has to do: attempts that are open, ended ones whose run waits for what they left, queue items that are
    due, and how long its record is."""

    workspace_id: uuid.UUID
    open_attempts: int
    collecting: int
    queued: int
    events: int


def busy_workspaces() -> list[Busy]:
    """Every workspace with what it has to do. Raises ScopeError outside `open_site`."""
    _demand_site()
    with connection.cursor() as cursor:
        cursor.execute("SELECT workspace_id, open_attempts, collecting, queued, events FROM lab_site_busy()")
        return [Busy(*row) for row in cursor.fetchall()]


def engine_shares(engine: uuid.UUID, *, asking: uuid.UUID) -> dict[uuid.UUID, Share]:
    """What each workspace with a pool on the engine has had of it in the last 24 hours, and asks for now; nothing where nobody but `asking` asks
    for any of it. Raises ScopeError outside `open_site`."""
    _demand_site()
    with connection.cursor() as cursor:
        cursor.execute("SELECT workspace_id, slot_ms, weight, wanted_slots FROM lab_site_shares(%s, %s)", [engine, asking])
        return {workspace: Share(slot_ms, weight, wanted) for workspace, slot_ms, weight, wanted in cursor.fetchall()}


def known_attempts(keys: list[str]) -> set[str]:
    """Those of the keys that are of an attempt here, of whichever workspace. Raises ScopeError outside `open_site`."""
    _demand_site()
    with connection.cursor() as cursor:
        cursor.execute("SELECT key FROM lab_site_known(%s)", [keys])
        return {key for (key,) in cursor.fetchall()}


def _demand_site() -> None:
    if not scope.current().site_reason:
        raise scope.ScopeError("This is asked in a site scope: `with open_site(reason)`.")
