"""Artifacts whose time is over: those whose own day has come, and those of a kind that is kept for so many days; and the deleted ones that go."""

from datetime import datetime, timedelta

from django.db.models import Q, QuerySet

from runs.models import Artifact
from runs.queries.rests import has_been_read, held, scores_below
from workspaces import scope
from workspaces.models import Workspace

READ_AT_ONCE = 20


def expired(now: datetime, limit: int) -> list[Artifact]:
    """At most `limit`, on which nothing rests now: the oldest that nothing has read, then of the others. An artifact's own day goes before what its
    kind says."""
    days: dict[str, int] = Workspace.objects.values_list("artifact_days", flat=True).get(pk=scope.current_id())
    over = Q(keep_until__lte=now)
    for kind, count in days.items():
        over |= Q(keep_until=None, kind=kind, created_at__lte=now - timedelta(days=count))
    # What something rests on is left out, so that it does not stand before the others for as long as it is held.
    rows = Artifact.objects.filter(over, deleted_at=None).exclude(held())
    found = list(rows.exclude(has_been_read()).order_by("created_at", "pk")[:limit])
    read = _some_read(rows, limit - len(found))
    kept = {one.artifact_id for one in scores_below(read, {artifact.pk for artifact in read})}
    return found + [artifact for artifact in read if artifact.pk not in kept]


def to_remove(now: datetime, grace: timedelta, limit: int) -> list[Artifact]:
    """Deleted for longer than `grace`, and neither removed yet nor kept again."""
    rows = Artifact.objects.filter(deleted_at__lte=now - grace, removed_at=None)
    found = list(rows.exclude(has_been_read()).order_by("deleted_at", "pk")[:limit])
    return found + _some_read(rows, limit - len(found))


def _some_read(rows: "QuerySet[Artifact]", limit: int) -> list[Artifact]:
    """A few of those that something has read, since for each it is walked to what rests on it; by chance, so that none stands before the others for
    good."""
    return list(rows.filter(has_been_read()).order_by("?")[: min(limit, READ_AT_ONCE)])
