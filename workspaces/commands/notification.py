"""Telling people: pieces of the commands whose outcome concerns them, and what the people themselves do about it ("seen").

Notifications follow from what the record says and are telemetry: no event, but the transaction of the command that tells.
"""

import uuid
from collections.abc import Iterable
from datetime import timedelta

from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Coalesce, Now

from workspaces.models import Notification, User

SEEN_STAY = timedelta(days=30)
STAY = timedelta(days=180)
BATCH = 1_000  # rows that one look removes


def notify(
    people: Iterable[User],
    *,
    cause: Notification.Cause,
    subject_type: str,
    subject_id: uuid.UUID,
    label: str,
    outcome: str = "",
    words: str = "",
) -> None:
    """Tell each person, once for each cause and subject. Services and agents read no pages and are told nothing.

    `outcome` is a status, `words` what there is to say besides. Longer text is cut.
    """
    rows = [
        Notification(
            person=person,
            cause=cause,
            subject_type=subject_type,
            subject_id=subject_id,
            subject_label=label[:300],
            outcome=outcome[:40],
            words=words[:300],
        )
        for person in people
        if person.kind == User.Kind.PERSON and person.is_active
    ]
    Notification.objects.bulk_create(rows, ignore_conflicts=True)


def settle_request(*, subject_id: uuid.UUID, outcome: str) -> None:
    """A request that waited was decided: whoever was asked sees how, and is called to it no more."""
    rows = Notification.objects.filter(cause=Notification.Cause.APPROVAL_ASKED, subject_id=subject_id)
    rows.update(outcome=outcome[:40], seen_at=Coalesce(F("seen_at"), Now()))


def take_back(*, cause: Notification.Cause, subject_id: uuid.UUID) -> None:
    """What was told of it before holds no more: the next word takes its place, and is new to whoever has seen the first."""
    Notification.objects.filter(cause=cause, subject_id=subject_id).delete()


def see(rows: "QuerySet[Notification]") -> int:
    """Mark `rows` as seen; returns how many were not before. Rows are locked in one order, so that two tabs do not wait in a circle."""
    with transaction.atomic():
        unseen = list(
            rows.filter(seen_at=None).order_by("created_at", "pk").select_for_update(no_key=True).values_list("pk", flat=True)
        )  # fmt: skip
        return Notification.objects.filter(pk__in=unseen).update(seen_at=Now()) if unseen else 0


def forget_old() -> int:
    """Remove what was seen and is older than 30 days, and whatever is older than 180: at most a batch. Returns how many."""
    old = Q(created_at__lt=Now() - STAY) | Q(created_at__lt=Now() - SEEN_STAY, seen_at__isnull=False)
    with transaction.atomic():
        batch = Notification.objects.filter(old).order_by("created_at", "pk").select_for_update(no_key=True, skip_locked=True)
        keys = list(batch.values_list("pk", flat=True)[:BATCH])
        return Notification.objects.filter(pk__in=keys).delete()[0] if keys else 0
