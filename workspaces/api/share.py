"""`/shares`: what this workspace opened to others, and what others opened to it."""

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from ninja import Schema, Status
from pydantic import Field

from workspaces.access import Kind, Permission
from workspaces.api.door import ApiRequest, Routes
from workspaces.api.registry_shapes import Body, Cursor, Line, Size
from workspaces.commands.share import grant_share, revoke_share
from workspaces.models import Benchmark, NotFound, ShareGrant
from workspaces.queries.paging import newest_first
from workspaces.queries.public_benchmark import standing_grant
from workspaces.queries.share import grants_given, grants_received

routes = Routes("shares")


class ShareOut(Schema):
    id: str
    uuid: UUID
    status: str
    object_type: str
    object_uuid: UUID
    object_label: str
    right: str
    from_workspace: str
    to_workspace: str | None
    is_public: bool
    reason: str
    granted_by: str
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None


class ShareList(Schema):
    items: list[ShareOut]
    next: str | None


class PublicIn(Body):
    reason: Line = Field(min_length=1, max_length=1000)


@routes.post("/benchmarks/{benchmark}/public", needs=Permission.SHARE, kind=Kind.SHARE, response=ShareOut, status=201)
def open_definition(request: ApiRequest, benchmark: str, body: PublicIn) -> Any:
    """Let everyone read the definition of a public benchmark, by a standing grant; where one stands already, it is answered."""
    found = Benchmark.objects.find(benchmark)
    grant = standing_grant(found) or grant_share(
        actor=request.actor, object_type="benchmark", object_id=found.public_id, to_workspace=None, expires_at=None, reason=body.reason
    )
    return Status(201, _out(grant))


@routes.delete("/benchmarks/{benchmark}/public", needs=Permission.SHARE, kind=Kind.SHARE, response=ShareOut)
def close_definition(request: ApiRequest, benchmark: str) -> Any:
    """Close it again. Copies that were made stay."""
    grant = standing_grant(Benchmark.objects.find(benchmark))
    if grant is None:
        raise NotFound("share")
    return _out(revoke_share(actor=request.actor, grant=grant))


@routes.get("/shares", needs=Permission.VIEW, kind=Kind.SHARE, response=ShareList)
def list_shares(request: ApiRequest, direction: Literal["given", "received"] = "given", cursor: Cursor = "", limit: Size = 50) -> Any:
    """Grants, newest first. Received ones are listed while they hold."""
    rows = grants_given() if direction == "given" else grants_received()
    page = newest_first(rows.select_related("workspace", "to_workspace", "granted_by"), cursor=cursor, size=limit)
    return {"items": [_out(grant) for grant in page.items], "next": page.next}


def _out(grant: ShareGrant) -> dict[str, Any]:
    return {
        "id": grant.public_id,
        "uuid": grant.pk,
        "status": grant.status,
        "object_type": grant.object_type,
        "object_uuid": grant.object_id,
        "object_label": grant.object_label,
        "right": grant.right,
        "from_workspace": grant.workspace.slug,
        "to_workspace": grant.to_workspace.slug if grant.to_workspace else None,
        "is_public": grant.is_public,
        "reason": grant.reason,
        "granted_by": grant.granted_by.label,
        "created_at": grant.created_at,
        "expires_at": grant.expires_at,
        "revoked_at": grant.revoked_at,
    }
