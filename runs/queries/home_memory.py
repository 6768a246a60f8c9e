"""What the workspace has lately learnt: the newest entries of its memory, whoever wrote them."""

from django.db.models import QuerySet

from runs.models import MemoryEntry, Trust
from workspaces import kept_query

SHOWN = 3


def newest_memory() -> list[MemoryEntry]:
    """Those that stand, the newest first."""
    return list(kept_query.ask(_newest))


def _newest() -> "QuerySet[MemoryEntry]":
    rows = MemoryEntry.objects.filter(superseded_at=None).exclude(trust=Trust.WITHDRAWN).select_related("run", "policy", "author")
    return rows.order_by("-created_at", "-pk")[:SHOWN]
