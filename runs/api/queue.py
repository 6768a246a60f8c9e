"""`/queue`: what waits, why, and what would start it; the same answer as the page's."""

from typing import Any

from django.conf import settings

from runs.api.schema import QueuePage
from runs.queries.queue import Waiting, waiting_runs
from workspaces.access import Kind, Permission
from workspaces.api.door import ApiRequest, Routes
from workspaces.api.registry_shapes import Cursor, Size
from workspaces.queries.paging import Place, in_order

routes = Routes("queue")
WAITING_MAX = 10_000  # runs that a queue is looked through for


@routes.get("/queue", needs=Permission.VIEW, kind=Kind.RUN, response=QueuePage)
def get_queue(request: ApiRequest, cursor: Cursor = "", limit: Size = settings.API_PAGE_SIZE) -> dict[str, Any]:
    """Runs that wait, pool by pool in the order in which they start: `position` counts within the pool, `reason` says why not yet, `release`
    what would start it."""

    def place(waiting: Waiting) -> Place:
        return (waiting.pool.slug, -waiting.priority, waiting.position_key, waiting.run.pk.hex)

    page = in_order(waiting_runs(WAITING_MAX), place, cursor=cursor, size=limit)
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
    }  # fmt: skip
