"""Artifacts whose time is over: those whose own day has come, and those of a kind that is kept for so many days; and the deleted ones that go."""

from datetime import datetime, timedelta

from django.db.models import Q

from runs.models import Artifact
from runs.queries.rests import held
from workspaces import scope
from workspaces.models import Workspace


def expired(now: datetime, limit: int) -> list[Artifact]:
    """At most `limit`, the oldest first; nothing rests on them now. An artifact's own day goes before what its kind says."""
    days: dict[str, int] = Workspace.objects.values_list("artifact_days", flat=True).get(pk=scope.current_id())
    over = Q(keep_until__lte=now)
    for kind, count in days.items():
        over |= Q(keep_until=None, kind=kind, created_at__lte=now - timedelta(days=count))
    # What something rests on is left out, so that it does not stand before the others for as long as it is held.
    return list(Artifact.objects.filter(over, deleted_at=None).exclude(held()).order_by("created_at", "pk")[:limit])


def to_remove(now: datetime, grace: timedelta, limit: int) -> list[Artifact]:
    """Deleted for longer than `grace`, and not removed yet."""
    return list(Artifact.objects.filter(deleted_at__lte=now - grace, removed_at=None).order_by("deleted_at", "pk")[:limit])
