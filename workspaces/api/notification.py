"""`/notifications`: what one was told in the workspace, and marking it as seen. Each person has their own; nobody reads another's."""

from datetime import datetime
from typing import Any
from uuid import UUID

from django.urls import reverse
from ninja import Schema
from pydantic import Field

from workspaces.access import Kind, Permission
from workspaces.api.door import ApiRequest, Routes
from workspaces.api.registry_shapes import Body, Cursor, Line, Size
from workspaces.commands.notification import see
from workspaces.models import Notification
from workspaces.queries.notification import find_told, shown, told_to, up_to
from workspaces.queries.paging import newest_first

routes = Routes("notifications")


class NotificationOut(Schema):
    id: str
    uuid: UUID
    status: str = Field(description="unseen or seen")
    cause: str = Field(description=f"One of {', '.join(Notification.Cause.values)}.")
    sentence: str
    subject_type: str
    subject_uuid: UUID
    subject_label: str
    outcome: str = Field(description="The subject's status.")
    words: str = Field(description="A score, or a reason.")
    created_at: datetime
    seen_at: datetime | None
    url: str = Field(description="The page of the subject.")


class NotificationList(Schema):
    items: list[NotificationOut]
    next: str | None


class SeenIn(Body):
    newest: Line = Field(max_length=64, description="Id of the newest notification that was shown; what came since stays unseen.")


class SeenOut(Schema):
    seen: int = Field(description="How many were not seen before.")
    url: str


@routes.get("/notifications", needs=Permission.VIEW, kind=Kind.WORKSPACE, response=NotificationList)
def list_notifications(request: ApiRequest, unseen: bool = False, cursor: Cursor = "", limit: Size = 50) -> Any:
    """What you were told here, newest first; with `unseen=true` what you have not seen yet."""
    rows = told_to(request.actor, request.rights)
    page = newest_first(rows.filter(seen_at=None) if unseen else rows, cursor=cursor, size=limit)
    return {"items": _out(request, page.items), "next": page.next}


@routes.post("/notifications/seen", needs=Permission.VIEW, kind=Kind.WORKSPACE, response=SeenOut)
def see_notifications(request: ApiRequest, body: SeenIn) -> Any:
    """Mark as seen whatever had come when `newest` was the newest."""
    newest = find_told(request.actor, request.rights, body.newest).get()
    count = see(up_to(told_to(request.actor, request.rights), newest))
    return {"seen": count, "url": reverse("notification-list", args=[request.workspace.slug])}


@routes.post("/notifications/{notification}/seen", needs=Permission.VIEW, kind=Kind.WORKSPACE, response=NotificationOut)
def see_notification(request: ApiRequest, notification: str) -> Any:
    """Mark one as seen."""
    rows = find_told(request.actor, request.rights, notification)
    see(rows)
    return _out(request, list(rows))[0]


def _out(request: ApiRequest, rows: list[Any]) -> list[dict[str, Any]]:
    copied = ("cause", "subject_type", "subject_label", "outcome", "words", "created_at", "seen_at")
    return [
        {
            "id": told.id,
            "uuid": told.row.pk,
            "status": "seen" if told.is_seen else "unseen",
            "sentence": told.sentence,
            "subject_uuid": told.row.subject_id,
            "url": told.url,
            **{name: getattr(told.row, name) for name in copied},
        }
        for told in shown(rows, request.workspace.slug)
    ]
