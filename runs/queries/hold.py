"""Is the queue of the workspace held?"""

from runs.models import QueueHold
from runs.start import Hold


def queue_hold() -> Hold | None:
    row = QueueHold.objects.select_related("held_by").first()
    return Hold(row.held_by.label, row.reason, row.created_at) if row is not None else None
