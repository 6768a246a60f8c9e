"""Is the queue of the workspace held?"""

from django.db.models import QuerySet

from runs.models import QueueHold
from runs.start import Hold
from workspaces import kept_query


def holds() -> kept_query.Question:
    """What `queue_hold` asks, for one who asks for more in the same round trip."""
    return kept_query.Question(_holds, (), {})


def queue_hold() -> Hold | None:
    return next((Hold(row.held_by.label, row.reason, row.created_at) for row in kept_query.ask(_holds)), None)


def _holds() -> "QuerySet[QueueHold]":
    return QueueHold.objects.select_related("held_by")
