"""The clock: each second it rings, by name, what is due in each workspace. A lost bell is rung again; the queue may be emptied any time."""

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import structlog
from django.db import connection

from runs import queue
from runs.queries.site import Busy, busy_workspaces
from workspaces import checkpoint, scope
from workspaces.queries.chain import Broken
from workspaces.queries.installation import UNDECIDED, is_copy
from workspaces.queries.site_chain import seal_site, site_events

log = structlog.get_logger(__name__)

TICK_SECONDS = 1.0
TIDY_SECONDS = 60  # expiries, folders and blobs that nobody names
LOCK_KEY = 0x6C61622D636C6B  # "lab-clk"


class Clock:
    """Keeps when each workspace was last told to tidy up; everything else is read anew each second."""

    def __init__(self) -> None:
        self.tidied: dict[uuid.UUID, datetime] = {}
        self._locked_on: Any = None
        self._warned_at: datetime | None = None

    def is_ours(self) -> bool:
        """Do we hold the lock of the clock? It belongs to the connection: freed by the server with it, taken again after a reconnect."""
        connection.ensure_connection()
        if self._locked_on is connection.connection:
            return True
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_try_advisory_lock(%s)", [LOCK_KEY])
            row = cursor.fetchone()
        if row is None or not row[0]:
            return False
        self._locked_on = connection.connection
        return True

    def tick(self, now: datetime | None = None) -> list[tuple[str, uuid.UUID]]:
        """Ring what is due; returns (job, workspace) of each bell. A queue that is behind is left alone: its bells are there already."""
        moment = now or datetime.now(UTC)
        if is_copy():
            if self._warned_at is None or (moment - self._warned_at).total_seconds() >= TIDY_SECONDS:
                log.warning(UNDECIDED)
                self._warned_at = moment
            return []
        with scope.open_site("the clock asks which workspaces have something to do"):
            busy = busy_workspaces()
        waiting = queue.depths()
        rung = []
        for workspace in busy:
            for name in self.due(workspace, moment):
                if waiting[queue.JOBS[name][0]] > 2 * len(busy) + 10:
                    continue
                with scope.open_workspace(workspace.workspace_id):
                    queue.ring(name, subject=workspace.workspace_id)
                rung.append((name, workspace.workspace_id))
                if name == "tidy_workspace":  # a bell that was left out is due again in the next second
                    self.tidied[workspace.workspace_id] = moment
        self._seal_site(moment)
        return rung

    def _seal_site(self, now: datetime) -> None:
        """The installation's own chain has no workspace, hence no job: it is sealed here."""
        if checkpoint.is_due(checkpoint.SITE, count=site_events(), now=now):
            try:
                seal_site()
            except (Broken, OSError) as fault:  # a full disk or a broken chain is said, and stops no bell
                log.error("the site's record is not sealed", fault=str(fault))

    def due(self, workspace: Busy, now: datetime) -> Iterator[str]:
        """Names of the jobs that a workspace wants this second."""
        if workspace.open_attempts:
            yield "watch_attempts"
        if workspace.collecting:
            yield "collect_attempt"
            yield "end_cancelled"  # active without an attempt: its end, or what was cancelled before it started
        if workspace.queued:
            yield "dispatch_run"  # looks at the whole queue of the workspace, whichever bell was lost
        tidied = self.tidied.get(workspace.workspace_id)
        if tidied is None or (now - tidied).total_seconds() >= TIDY_SECONDS:
            yield "tidy_workspace"
        if checkpoint.is_due(checkpoint.name_of(workspace.workspace_id), count=workspace.events, now=now):
            yield "seal_chain"
