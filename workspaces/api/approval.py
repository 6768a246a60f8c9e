"""`/approvals`: requests for a decision; deciding is of the floor that knows the subject."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from django.urls import reverse
from ninja import Query, Schema

from workspaces.access import Kind, Permission
from workspaces.api.door import ApiRequest, Routes
from workspaces.api.registry_shapes import Cursor, Size
from workspaces.models import Approval, ApprovalVote
from workspaces.queries.approval import title_of, votes_on
from workspaces.queries.inbox import Filters, inbox
from workspaces.queries.paging import newest_first

routes = Routes("approvals")


class VoteOut(Schema):
    person: str
    approves: bool
    comment: str
    created_at: datetime


class ApprovalOut(Schema):
    id: str
    uuid: UUID
    status: str
    title: str
    subject_type: str
    subject_uuid: UUID
    subject_label: str
    reason: str
    requested_by: str
    quorum: int
    content_hash: str
    created_at: datetime
    expires_at: datetime
    decided_at: datetime | None
    content: Any = None
    votes: list[VoteOut] | None = None
    url: str


class ApprovalList(Schema):
    items: list[ApprovalOut]
    next: str | None


@routes.get("/approvals", needs=Permission.VIEW, kind=Kind.APPROVAL, response=ApprovalList)
def list_approvals(
    request: ApiRequest,
    status: Literal["pending", "approved", "refused", "void", "expired"] | None = None,
    kind: Annotated[str, Query(max_length=40)] = "",
    whose: Literal["mine", "own"] | None = None,
    cursor: Cursor = "",
    limit: Size = 50,
) -> Any:
    """Requests, newest first, without what is asked in full. `kind` is a subject type; `mine` are those that wait for one's decision, `own` those
    that one asked for."""
    rows = inbox(Filters(status=status or "", kind=kind, whose=whose or ""), request.actor, request.rights)
    page = newest_first(rows, cursor=cursor, size=limit)
    return {"items": [_out(request, approval) for approval in page.items], "next": page.next}


@routes.get("/approvals/{approval}", needs=Permission.VIEW, kind=Kind.APPROVAL, response=ApprovalOut)
def get_approval(request: ApiRequest, approval: str) -> Any:
    """One request with its content and votes. `content_hash` is what a decision is sent with."""
    found = Approval.objects.find(approval)
    return {**_out(request, found), "content": found.content, "votes": [_vote_out(vote) for vote in votes_on(found)]}


def _out(request: ApiRequest, approval: Approval) -> dict[str, Any]:
    return {
        "id": approval.public_id,
        "uuid": approval.pk,
        "status": approval.status,
        "title": title_of(approval),
        "subject_type": approval.subject_type,
        "subject_uuid": approval.subject_id,
        "subject_label": approval.subject_label,
        "reason": approval.reason,
        "requested_by": approval.requested_by.label,
        "quorum": approval.quorum,
        "content_hash": approval.content_hash,
        "created_at": approval.created_at,
        "expires_at": approval.expires_at,
        "decided_at": approval.decided_at,
        "url": reverse("approval", args=[request.workspace.slug, approval.public_id]),
    }


def _vote_out(vote: ApprovalVote) -> dict[str, Any]:
    return {"person": vote.person.label, "approves": vote.approves, "comment": vote.comment, "created_at": vote.created_at}
