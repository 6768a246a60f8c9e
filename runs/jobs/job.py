"""What every job does first: its bell taken down, a fresh connection, its workspace's scope, labsite itself as actor."""

import functools
import uuid
from collections.abc import Callable

import structlog
from django.db import close_old_connections
from rq import get_current_job

from runs import queue
from runs.jobs.rest import Rest
from workspaces import kept_query, scope
from workspaces.access import Actor
from workspaces.models import Workspace
from workspaces.queries.installation import UNDECIDED, copies

log = structlog.get_logger(__name__)

Body = Callable[[Actor, uuid.UUID], None]


def job(body: Body, *, rest: Rest | None = None) -> Callable[..., None]:
    """Make a function of (actor, subject id) a job. Jobs take ids as text, may run twice, and end quietly where their workspace is gone. They do
    nothing while the database is a copy of which nobody has said what it is: asked here of all that acts by itself. A `rest` is taken by workers
    while the bell still hangs: whoever rings meanwhile rings no second one."""

    @functools.wraps(body)
    def run(*, workspace_id: str, subject_id: str) -> None:
        current = get_current_job()
        if rest is not None and current is not None:
            rest.take()
        queue.heard(body.__name__, subject_id=subject_id)
        close_old_connections()  # a SimpleWorker keeps one connection; after a restart of PostgreSQL it would fail for ever
        found, copied = kept_query.ask_together([kept_query.question(Workspace, pk=uuid.UUID(workspace_id)), copies()])
        if copied:
            log.warning(UNDECIDED, job=body.__name__)  # the clock rings again once that is decided
            return
        if not found:
            return
        with scope.open_workspace(uuid.UUID(workspace_id)):
            body(Actor.system(job_id=current.id if current else body.__name__), uuid.UUID(subject_id))

    setattr(run, "is_job", True)
    return run
