"""`/invitations`: open ones, making one (its link is in the answer, once), taking one back."""

from datetime import datetime
from typing import Any
from uuid import UUID

from django.urls import reverse
from ninja import Schema, Status
from pydantic import Field

from workspaces.access import Kind, Permission
from workspaces.api.door import ApiRequest, Routes
from workspaces.api.member import Kinds
from workspaces.api.registry_shapes import Body, Cursor, Line, Size
from workspaces.commands.invitation import MAX_DAYS, invite, revoke_invitation
from workspaces.mail import link_of, send_invitation
from workspaces.models import Invitation
from workspaces.queries.invitation import page_of_invitations

routes = Routes("invitations")


class InvitationIn(Body):
    email: Line = Field(max_length=254)
    role: Line = Field(max_length=20)
    kinds: Kinds = Field(default_factory=list, max_length=32)
    days: int = Field(7, ge=1, le=MAX_DAYS)


class InvitationOut(Schema):
    id: str
    uuid: UUID
    status: str
    email: str
    role: str
    kinds: list[str]
    invited_by: str
    expires_at: datetime
    url: str


class InvitationMade(InvitationOut):
    link: str = Field(description="Works once; shown in this answer only.")
    is_mailed: bool


class InvitationList(Schema):
    items: list[InvitationOut]
    next: str | None


@routes.get("/invitations", needs=Permission.MANAGE_MEMBERS, kind=Kind.MEMBER, response=InvitationList)
def list_invitations(request: ApiRequest, cursor: Cursor = "", limit: Size = 50) -> Any:
    """Invitations that nobody has used yet, newest first."""
    page = page_of_invitations(cursor=cursor, size=limit)
    return {"items": [_out(request, row) for row in page.items], "next": page.next}


@routes.post("/invitations", needs=Permission.MANAGE_MEMBERS, kind=Kind.MEMBER, response=InvitationMade, status=201)
def post_invitation(request: ApiRequest, body: InvitationIn) -> Any:
    """Make an invitation; where the installation can send mail, it is mailed too."""
    row, secret = invite(actor=request.actor, invitation_id=request.chosen_id, **body.dict())
    request.answer_is_secret = True
    link = link_of(row, secret, workspace=request.workspace.slug)
    return Status(201, _out(request, row) | {"link": link, "is_mailed": send_invitation(row, link, workspace=request.workspace.name)})


@routes.post("/invitations/{invitation}/revoke", needs=Permission.MANAGE_MEMBERS, kind=Kind.MEMBER, response=InvitationOut)
def post_revocation(request: ApiRequest, invitation: str) -> Any:
    """Take an invitation back; its link opens nothing any more."""
    return _out(request, revoke_invitation(actor=request.actor, invitation=invitation))


def _out(request: ApiRequest, row: Invitation) -> dict[str, Any]:
    return {
        "id": row.public_id,
        "uuid": row.pk,
        "status": "revoked" if row.revoked_at else "accepted" if row.accepted_at else "open",
        "email": row.email,
        "role": row.role,
        "kinds": row.kinds,
        "invited_by": row.invited_by.label,
        "expires_at": row.expires_at,
        "url": reverse("member-list", args=[request.workspace.slug]),
    }
