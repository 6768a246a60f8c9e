"""`/approvals`: requests for a decision; deciding is of the floor that knows the subject."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from django.urls import reverse
from ninja import Query, Schema, Status
from pydantic import Field

from workspaces.access import Kind, Permission
from workspaces.api.door import ApiRequest, Routes
from workspaces.api.registry_shapes import Body, Cursor, Size
from workspaces.commands.approval_comment import LONGEST, comment_on
from workspaces.models import Approval, ApprovalComment, ApprovalVote
from workspaces.queries.approval import title_of, votes_on
from workspaces.queries.approval_talk import talk_on
from workspaces.queries.inbox import Filters, inbox
from workspaces.queries.paging import newest_first

routes = Routes("approvals")


class CommentIn(Body):
    text: Annotated[str, Field(min_length=1, max_length=LONGEST)]


class CommentOut(Schema):
    person: str
    text: str
    created_at: datetime


class VoteOut(Schema):
    person: str
    behalf: str = Field(description="In whose name; empty: their own.")
    is_alone: bool = Field(description="An owner broke the glass.")
    approves: bool
    answer: str = Field(description="To a question; empty of what is approved or refused.")
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
    role: str = Field(description="Whose approval counts: approver, admin or owner, each with those above it.")
    content_hash: str
    created_at: datetime
    expires_at: datetime
    decided_at: datetime | None
    end_reason: str
    content: Any = None
    votes: list[VoteOut] | None = None
    comments: list[CommentOut] | None = None
    url: str


class ApprovalList(Schema):
    items: list[ApprovalOut]
    next: str | None


@routes.get("/approvals", needs=Permission.VIEW, kind=Kind.APPROVAL, response=ApprovalList)
def list_approvals(
    request: ApiRequest,
    status: Literal["pending", "approved", "refused", "void", "expired", "withdrawn"] | None = None,
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
    return {
        **_out(request, found),
        "content": found.content,
        "votes": [_vote_out(vote) for vote in votes_on(found)],
        "comments": _talk(found),
    }


@routes.post("/approvals/{approval}/comments", needs=Permission.VIEW, kind=Kind.APPROVAL, response=CommentOut, status=201)
def post_comment(request: ApiRequest, approval: str, body: CommentIn) -> Any:
    """Ask or answer, without deciding: whoever asked may, and whoever may decide."""
    comment = comment_on(actor=request.actor, approval=Approval.objects.find(approval), text=body.text)
    return Status(201, _comment_out(comment))


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
        "role": approval.role,
        "content_hash": approval.content_hash,
        "created_at": approval.created_at,
        "expires_at": approval.expires_at,
        "decided_at": approval.decided_at,
        "end_reason": approval.end_reason,
        "url": reverse("approval", args=[request.workspace.slug, approval.public_id]),
    }


def _vote_out(vote: ApprovalVote) -> dict[str, Any]:
    return {
        "person": vote.person.label,
        "behalf": vote.behalf.label if vote.behalf else "",
        "is_alone": vote.is_alone,
        "approves": vote.approves,
        "answer": vote.answer,
        "comment": vote.comment,
        "created_at": vote.created_at,
    }


def _talk(approval: Approval) -> list[dict[str, Any]]:
    return [_comment_out(comment) for comment in talk_on(approval)]


def _comment_out(comment: ApprovalComment) -> dict[str, Any]:
    return {"person": comment.person.label, "text": comment.text, "created_at": comment.created_at}
