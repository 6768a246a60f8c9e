"""Attempts that have ended and whose files are not all in the store yet."""

from django.db.models import Exists, OuterRef, QuerySet

from runs.lifecycle import ACTIVE, OPEN_ATTEMPTS, TERMINAL
from runs.models import Attempt, Watch
from runs.queries.ours import ours


def collecting() -> QuerySet[Attempt]:
    """Their runs wait for what they left: closed, and the newest of a run that has not ended."""
    newer = Attempt.objects.filter(run=OuterRef("run"), number__gt=OuterRef("number"))
    closed = Attempt.objects.exclude(status__in=sorted(OPEN_ATTEMPTS))
    return closed.filter(~Exists(newer), run__status__in=sorted(ACTIVE)).order_by("ended_at", "pk")


def kept_back() -> QuerySet[Attempt]:
    """Their runs have ended without all of their files, which stay in the pool."""
    kept = Watch.objects.filter(attempt=OuterRef("pk"), observed=Watch.FOLDER_KEPT)
    return Attempt.objects.filter(Exists(kept), ours(), run__status__in=sorted(TERMINAL)).order_by("ended_at", "pk")
