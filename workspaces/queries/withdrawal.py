"""What has been withdrawn and what rests on it, as far as it holds now."""

import uuid
from collections.abc import Collection, Iterable

from django.db.models import QuerySet

from workspaces import kept_query
from workspaces.models import Withdrawal, WithdrawnObject


def marked(kind: str) -> "QuerySet[WithdrawnObject, uuid.UUID]":
    """Keys of things of a kind that rest on something withdrawn; for `exclude(pk__in=…)` and its like."""
    return WithdrawnObject.objects.filter(kind=kind, withdrawal__undone_at=None).values_list("object_id", flat=True)


def standing_on(things: Iterable[tuple[str, uuid.UUID]]) -> dict[tuple[str, uuid.UUID], list[Withdrawal]]:
    """Withdrawals that hold and have marked these things, by kind and key; a thing that none has marked is left out. One query."""
    asked = set(things)
    return standing_among(asked, kept_query.ask_together([marks_on(asked)])[0])


def marks_on(things: Iterable[tuple[str, uuid.UUID]]) -> kept_query.Question:
    """What `standing_on` asks, for one who asks for more in the same round trip; `standing_among` reads its answer."""
    return kept_query.question(
        WithdrawnObject, object_id__in={pk for _, pk in things}, withdrawal__undone_at__isnull=True, related=("withdrawal",),
        order_by=("withdrawal__created_at",),
    )  # fmt: skip


def standing_among(
    things: Collection[tuple[str, uuid.UUID]], marks: Iterable[WithdrawnObject]
) -> dict[tuple[str, uuid.UUID], list[Withdrawal]]:
    found: dict[tuple[str, uuid.UUID], list[Withdrawal]] = {}
    for mark in marks:
        if (mark.kind, mark.object_id) in things:
            found.setdefault((mark.kind, mark.object_id), []).append(mark.withdrawal)
    return found


def withdrawals_on(kind: str, pk: uuid.UUID) -> list[Withdrawal]:
    """Withdrawals that hold and have marked this one thing."""
    return standing_on([(kind, pk)]).get((kind, pk), [])


def withdrawn(kind: str, keys: Collection[uuid.UUID]) -> set[uuid.UUID]:
    """Those of `keys` that rest on something withdrawn."""
    found = kept_query.rows(WithdrawnObject, kind=kind, object_id__in=keys, withdrawal__undone_at__isnull=True) if keys else ()
    return {mark.object_id for mark in found}
