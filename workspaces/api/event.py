"""The record over the API: events with the filters of the audit page."""

from datetime import datetime
from typing import Annotated, Any

from django.urls import reverse
from ninja import Query, Schema

from workspaces.access import Kind, Permission
from workspaces.api.door import ApiRequest, Routes
from workspaces.api.registry_shapes import Size
from workspaces.models import AuditEvent, EventSubject
from workspaces.queries.event import Told, filters_of, one_event, page_of_events

routes = Routes("events")


class SubjectOut(Schema):
    type: str
    id: str
    label: str
    before_hash: str
    after_hash: str


class EventOut(Schema):
    id: str
    uuid: str
    url: str
    sequence: int
    time: datetime
    verb: str
    sentence: str
    reason: str
    actor_kind: str
    actor: str
    actor_id: str | None
    behalf: str
    subject_type: str
    subject_id: str | None
    subject: str
    command_id: str
    request_id: str
    job_id: str
    token_id: str | None
    payload_erased: bool
    details: dict[str, Any]
    payload_hash: str
    previous_hash: str
    hash: str


class EventWithSubjectsOut(EventOut):
    subjects: list[SubjectOut]


class EventPage(Schema):
    items: list[EventOut]
    next: str | None


@routes.get("/events", needs=Permission.VIEW_AUDIT, kind=Kind.AUDIT, response=EventPage)
def list_events(
    request: ApiRequest,
    cursor: Annotated[str, Query(max_length=20)] = "",
    limit: Size = 50,
    actor: Annotated[str, Query(max_length=200)] = "",
    verb: Annotated[str, Query(max_length=60)] = "",
    subject: Annotated[str, Query(max_length=300)] = "",
    since: Annotated[str, Query(max_length=40, alias="from")] = "",
    until: Annotated[str, Query(max_length=40, alias="to")] = "",
    request_id: Annotated[str, Query(max_length=64, alias="request")] = "",
) -> dict[str, Any]:
    """Events, newest first. `verb` is a verb or a noun; `from` and `to` are days of the workspace's zone or moments with an offset."""
    asked = {"actor": actor, "verb": verb, "subject": subject, "from": since, "to": until, "request": request_id}
    page = page_of_events(filters_of(asked, zone=request.workspace.zone), cursor=cursor, size=limit)
    return {"items": [shape_of_event(request, told) for told in page.items], "next": page.next}


@routes.get("/events/{event}", needs=Permission.VIEW_AUDIT, kind=Kind.AUDIT, response=EventWithSubjectsOut)
def get_event(request: ApiRequest, event: str) -> dict[str, Any]:
    """One event, by id or sequence number, with every object that it changed."""
    told, subjects, _ = one_event(event)
    return {**shape_of_event(request, told), "subjects": [_subject(subject) for subject in subjects]}


def shape_of_event(request: ApiRequest, told: Told) -> dict[str, Any]:
    row: AuditEvent = told.event
    return {
        "id": row.public_id,
        "uuid": str(row.pk),
        "url": reverse("event", args=[request.workspace.slug, row.public_id]),
        "sequence": row.sequence,
        "time": row.recorded_at,
        "verb": row.verb,
        "sentence": told.sentence,
        "reason": told.reason,
        "actor_kind": row.actor_kind,
        "actor": row.actor_label,
        "actor_id": str(row.actor_id) if row.actor_id else None,
        "behalf": row.behalf_label,
        "subject_type": row.subject_type,
        "subject_id": str(row.subject_id) if row.subject_id else None,
        "subject": row.subject_label,
        "command_id": str(row.command_id),
        "request_id": row.request_id,
        "job_id": row.job_id,
        "token_id": str(row.token_id) if row.token_id else None,
        "payload_erased": told.is_erased,
        "details": told.details,
        "payload_hash": row.payload_hash,
        "previous_hash": row.previous_hash,
        "hash": row.hash,
    }


def _subject(subject: EventSubject) -> dict[str, str]:
    return {
        "type": subject.type,
        "id": str(subject.object_id),
        "label": subject.label,
        "before_hash": subject.before_hash,
        "after_hash": subject.after_hash,
    }
