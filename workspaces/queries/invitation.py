"""Invitations of the open workspace, and whether a link still opens one."""

import hmac

from django.db.models import QuerySet
from django.utils import timezone

from workspaces import ids
from workspaces.models import Invitation
from workspaces.queries.paging import Page, newest_first
from workspaces.queries.token import hash_secret


def open_invitations(limit: int = 500) -> list[Invitation]:
    """Neither accepted nor revoked nor expired, newest first."""
    return list(_open().order_by("-created_at", "-pk")[:limit])


def page_of_invitations(*, cursor: str = "", size: int = 50) -> Page[Invitation]:
    """The same by pages. Raises BadCursor."""
    return newest_first(_open(), cursor=cursor, size=size)


def _open() -> "QuerySet[Invitation]":
    rows = Invitation.objects.filter(accepted_at=None, revoked_at=None, expires_at__gt=timezone.now())
    return rows.select_related("invited_by")


def usable(invitation: str, secret: str, *, lock: bool = False) -> Invitation | None:
    """The invitation that a link opens; None where it is used, expired, revoked, unknown, or the secret is another's."""
    key = ids.as_uuid(invitation)
    rows = Invitation.objects.select_for_update(of=("self",), no_key=True) if lock else Invitation.objects.all()
    row = rows.select_related("invited_by").filter(pk=key).first() if key else None
    if row is None or not hmac.compare_digest(row.secret_hash, hash_secret(secret)):
        return None
    if row.accepted_at is not None or row.revoked_at is not None or row.expires_at <= timezone.now():
        return None
    return row
