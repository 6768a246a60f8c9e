"""Who looks at an attempt: one worker at a time, by the database's clock. A worker that died is replaced once its lease is over."""

import uuid
from datetime import timedelta

from django.db.models import Q
from django.db.models.functions import Now

from runs.models import Watch


def take(attempt_id: uuid.UUID, seconds: float, *, is_collecting: bool) -> bool:
    """Take the lease for so long; False where another one has it, or where it is for collectors since the attempt's end, and not before."""
    free = Watch.objects.filter(
        Q(lease_until=None) | Q(lease_until__lt=Now()), attempt=attempt_id, collecting_since__isnull=not is_collecting
    )
    return bool(free.update(lease_until=Now() + timedelta(seconds=seconds)))


def renew(attempt_id: uuid.UUID, seconds: float) -> None:
    """Hold it longer; what still works is not taken for dead."""
    Watch.objects.filter(attempt=attempt_id).update(lease_until=Now() + timedelta(seconds=seconds))


def release(attempt_id: uuid.UUID, pause_seconds: float = 0) -> None:
    """Let go; nobody else looks before `pause_seconds` are over."""
    until = Now() + timedelta(seconds=pause_seconds) if pause_seconds else None
    Watch.objects.filter(attempt=attempt_id).update(lease_until=until)


def release_open(attempt_id: uuid.UUID) -> None:
    """Let go of an attempt that was looked at. Where its end was recorded meanwhile, that has let go, and a collector may have it."""
    Watch.objects.filter(attempt=attempt_id, collecting_since=None).update(lease_until=None)
