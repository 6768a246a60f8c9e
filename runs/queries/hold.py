"""Is the queue of the workspace held?"""

from runs.models import QueueHold
from runs.start import Hold
from workspaces import kept_query


def queue_hold() -> Hold | None:
    rows = kept_query.ask(lambda: QueueHold.objects.select_related("held_by"))
    return next((Hold(row.held_by.label, row.reason, row.created_at) for row in rows), None)
