"""`/tokens`: one's own (everybody's for who manages members), making one (its text is in the answer, once), ending one."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from django.urls import reverse
from ninja import Schema, Status
from pydantic import Field

from workspaces.access import Kind, Permission
from workspaces.api.door import ApiRequest, Routes
from workspaces.api.registry_shapes import Body, Cursor, Line, Size
from workspaces.audit import Refusal
from workspaces.commands.token import MAX_DAYS, create_token, revoke_token
from workspaces.models import User
from workspaces.queries.token_list import TokenRow, page_of_tokens, row_of

routes = Routes("tokens")


class TokenIn(Body):
    name: Line = Field(min_length=1, max_length=120)
    scopes: list[Annotated[Line, Field(max_length=40)]] = Field(min_length=1, max_length=64, description="`<noun>:read` or `<noun>:write`.")
    days: int = Field(90, ge=1, le=MAX_DAYS)
    user: Line | None = Field(None, max_length=150, description="A service account; yourself where left out.")


class Revocation(Body):
    reason: Line = Field("", max_length=1000)


class TokenOut(Schema):
    id: str
    uuid: UUID
    status: str
    name: str
    user: str
    scopes: list[str]
    created_at: datetime
    expires_at: datetime
    used_at: datetime | None
    url: str


class TokenMade(TokenOut):
    token: str = Field(description="The text to send as `Authorization: Bearer …`; shown in this answer only.")


class TokenList(Schema):
    items: list[TokenOut]
    next: str | None


@routes.get("/tokens", needs=Permission.VIEW, kind=Kind.MEMBER, response=TokenList)
def list_tokens(request: ApiRequest, cursor: Cursor = "", limit: Size = 50) -> Any:
    """Tokens, newest first, with when each was last used: one's own, everybody's for who manages members."""
    manages = request.rights.allows(Permission.MANAGE_MEMBERS, Kind.MEMBER)
    page = page_of_tokens(holder=None if manages else request.actor.user, cursor=cursor, size=limit)
    return {"items": [_out(request, row) for row in page.items], "next": page.next}


@routes.post("/tokens", needs=Permission.VIEW, kind=Kind.MEMBER, response=TokenMade, status=201)
def post_token(request: ApiRequest, body: TokenIn) -> Any:
    """Make a token; a token itself makes none."""
    holder = User.objects.filter(username=body.user).first() if body.user else None
    if body.user and holder is None:
        raise Refusal("There is no such account here.", field="user")
    token, text = create_token(
        actor=request.actor, name=body.name, scopes=body.scopes, days=body.days, holder=holder, token_id=request.chosen_id
    )
    request.answer_is_secret = True
    return Status(201, _out(request, row_of(token)) | {"token": text})


@routes.post("/tokens/{token}/revoke", needs=Permission.VIEW, kind=Kind.MEMBER, response=TokenOut)
def post_revocation(request: ApiRequest, token: str, body: Revocation) -> Any:
    """End a token: one's own, or as an admin anybody's."""
    return _out(request, row_of(revoke_token(actor=request.actor, token=token, reason=body.reason)))


def _out(request: ApiRequest, row: TokenRow) -> dict[str, Any]:
    token = row.token
    return {
        "id": token.public_id,
        "uuid": token.pk,
        "status": row.status,
        "name": token.name,
        "user": token.holder.username,
        "scopes": token.scopes,
        "created_at": token.created_at,
        "expires_at": token.expires_at,
        "used_at": row.used_at,
        "url": reverse("token-list", args=[request.workspace.slug]),
    }
