"""`/queue`: what waits, why, and what would start it; the same answer as the page's."""

from typing import Any

from django.conf import settings

from runs.api.schema import HoldOut, MovedOut, MoveIn, PriorityIn, PrioritySetOut, QueuePage, ReasonIn, ReleasedOut
from runs.commands.placement import move_run
from runs.commands.queue import hold_queue, release_queue, set_priority
from runs.models import Run
from runs.queries import hold
from runs.queries.queue import waiting_runs
from workspaces.access import Kind, Permission
from workspaces.api.door import ApiRequest, Routes
from workspaces.api.registry_shapes import Cursor, Size
from workspaces.models import Pool

routes = Routes("queue")


@routes.get("/queue", needs=Permission.VIEW, kind=Kind.RUN, response=QueuePage)
def get_queue(request: ApiRequest, cursor: Cursor = "", limit: Size = settings.API_PAGE_SIZE) -> dict[str, Any]:
    """Runs that wait, pool by pool in the order in which they start: `position` counts within the pool, `reason` says why not yet, `release`
    what would start it."""
    page = waiting_runs(cursor=cursor, size=limit)
    return {
        "items": [
            {
                "run_id": waiting.run.public_id, "name": waiting.run.name, "compute_pool_id": waiting.pool.public_id,
                "priority": waiting.priority, "position": waiting.place, "queued_at": waiting.since, "reason": waiting.reason,
                "release": waiting.release,
            }
            for waiting in page.items
        ],
        "next": page.next,
        "hold": _hold(),
    }  # fmt: skip


@routes.post("/queue/hold", needs=Permission.MANAGE_QUEUE, kind=Kind.RUN, response=HoldOut)
def hold_all(request: ApiRequest, body: ReasonIn) -> dict[str, Any] | None:
    """Let no queued run start until the queue is released; what runs goes on."""
    hold_queue(actor=request.actor, reason=body.reason)
    return _hold()


@routes.post("/queue/release", needs=Permission.MANAGE_QUEUE, kind=Kind.RUN, response=ReleasedOut)
def release_all(request: ApiRequest, body: ReasonIn) -> dict[str, bool]:
    """Let queued runs start again."""
    release_queue(actor=request.actor, reason=body.reason)
    return {"is_held": False}


@routes.post("/queue/{run}/priority", needs=Permission.MANAGE_QUEUE, kind=Kind.RUN, response=PrioritySetOut)
def change_priority(request: ApiRequest, run: str, body: PriorityIn) -> dict[str, Any]:
    """Let a queued run go sooner or later. Above the workspace's limit it waits for an approver: `approval` is the request."""
    found = Run.objects.find(run)
    asked = set_priority(actor=request.actor, run=found, priority=body.priority, reason=body.reason)
    found.refresh_from_db(fields=["priority"])
    return {"run_id": found.public_id, "priority": found.priority, "approval": asked.public_id if asked is not None else None}


@routes.post("/queue/{run}/move", needs=Permission.MANAGE_QUEUE, kind=Kind.RUN, response=MovedOut)
def move_to_pool(request: ApiRequest, run: str, body: MoveIn) -> dict[str, Any]:
    """Let a queued run wait for another pool: admitted anew, its reservation corrected. 409 with `certificate` where a limit says no."""
    pool = Pool.objects.find(body.compute_pool_id)
    moved = move_run(actor=request.actor, run=Run.objects.find(run), pool=pool, reason=body.reason)
    return {
        "run_id": moved.public_id, "compute_pool_id": pool.public_id, "certificate": moved.certificate.public_id,
        "reserved_gpu_ms": moved.reserved_gpu_ms,
    }  # fmt: skip


def _hold() -> dict[str, Any] | None:
    standing = hold.queue_hold()
    return {"by": standing.by, "reason": standing.reason, "since": standing.since} if standing is not None else None
