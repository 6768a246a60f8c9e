"""Keeping whether a pool answered: a measurement of each time that somebody asks it, not a change of anything."""

from collections.abc import Sequence
from typing import Any

from django.utils import timezone

from runs.models import PoolContact
from runs.place import Found, place_in, probe_of
from runs.pools.base import PoolError
from runs.reservation import GRACE_SECONDS
from workspaces import scope
from workspaces.models import Pool

STRANGERS_KEPT = 100


def visit(pool: Pool) -> Found:
    """Go to the pool's engine once, and say what it is and what stands in the way; that it answered, or did not, is kept. Raises PoolError."""
    try:
        found = probe_of(pool)
    except PoolError as error:
        note_silence(pool, error.reason)
        raise
    _note(pool, answered_at=timezone.now())
    return found


def end_there(pool: Pool, key: str) -> None:
    """Tell a pool to end what no attempt explains. Raises PoolError; to tell it again does no harm."""
    place_in(pool, pool.isolation).cancel(scope.current_id().hex, key, grace_seconds=GRACE_SECONDS)


def note_silence(pool: Pool, reason: str) -> None:
    """It did not do what was asked, for a reason in words."""
    shown = "".join(character if character.isprintable() else " " for character in reason)
    _note(pool, failed_at=timezone.now(), reason=shown[:300])


def note_answer(pool: Pool, strangers: Sequence[str]) -> None:
    """It said what is at work there; `strangers`: keys of what of it is nobody's here."""
    row = PoolContact.objects.filter(pool=pool).first()
    since = {one["key"]: one["since"] for one in row.strangers} if row is not None else {}
    now = timezone.now()
    kept = [{"key": key, "since": since.get(key, now.isoformat())} for key in sorted(strangers, key=lambda key: (key not in since, key))]
    _note(pool, answered_at=now, strangers=kept[:STRANGERS_KEPT], stranger_count=len(kept))


def _note(pool: Pool, **said: Any) -> None:
    row = PoolContact(pool=pool, **said)
    PoolContact.objects.bulk_create([row], update_conflicts=True, unique_fields=["workspace", "pool"], update_fields=list(said))
