"""The installation's routes: who am I, the workspaces that I may enter, making one."""

from datetime import datetime
from typing import Any
from uuid import UUID

from django.urls import reverse
from ninja import Schema, Status
from pydantic import Field

from workspaces.access import workspaces_of
from workspaces.api.door import ApiRequest, SiteRoutes
from workspaces.api.problem import problem
from workspaces.api.registry_shapes import Cursor, Size
from workspaces.commands.declaration import apply_declaration
from workspaces.declaration import DeclarationError, parse_declaration
from workspaces.models import Workspace
from workspaces.queries.paging import in_order

routes = SiteRoutes("site")


class WorkspaceOut(Schema):
    id: str
    uuid: UUID
    status: str
    slug: str
    name: str
    created_at: datetime
    url: str


class WorkspaceList(Schema):
    items: list[WorkspaceOut]
    next: str | None


class MadeStepOut(Schema):
    did: str = Field(description="created, changed, kept (as a name), unchanged or ignored.")
    words: str


class WorkspaceMade(WorkspaceOut):
    steps: list[MadeStepOut]


class TokenOfMe(Schema):
    id: str
    scopes: list[str]
    workspace: str


class MeOut(Schema):
    uuid: UUID
    user: str
    label: str
    email: str
    kind: str
    site_roles: list[str]
    token: TokenOfMe | None = Field(description="The token that asks; null for a signed-in browser.")
    workspaces: list[WorkspaceOut]


@routes.site("GET", "/me", needs="signed_in", response=MeOut)
def get_me(request: ApiRequest) -> Any:
    """Who asks, with what, and where they may enter."""
    actor = request.actor
    assert actor.user is not None
    token = None
    if actor.token_id is not None:
        token = {
            "id": f"token_{actor.token_id.hex}",
            "scopes": sorted(actor.token_scopes or ()),
            "workspace": str(actor.token_workspace_id),
        }
    return {
        "uuid": actor.user.pk,
        "user": actor.user.username,
        "label": actor.user.label,
        "email": actor.user.email,
        "kind": actor.user.kind,
        "site_roles": [] if token else actor.user.site_roles,
        "token": token,
        "workspaces": [workspace_out(row) for row in _mine(request)],
    }


@routes.site("GET", "/workspaces", needs="signed_in", response=WorkspaceList)
def list_workspaces(request: ApiRequest, cursor: Cursor = "", limit: Size = 50) -> Any:
    """The workspaces that the caller may enter, by name; a token sees its own only."""
    page = in_order(_mine(request), lambda row: (row.name, row.slug), cursor=cursor, size=limit)
    return {"items": [workspace_out(row) for row in page.items], "next": page.next}


@routes.site("POST", "/workspaces", needs="signed_in", response={200: WorkspaceMade, 201: WorkspaceMade})
def post_workspace(request: ApiRequest) -> Any:
    """Make the workspace that the body declares, as JSON or YAML, or update it: 201 where it is new, else 200.

    `workspace` (or `slug`) is its short name; the other keys are those of `manage.py apply`: name, owners, billing_account, cost_centre,
    boundary_kind, boundary_reason, zone, week_start, visibility, region, objective, compute_pools, benchmarks, datasets, agents, budgets, …
    A new one needs the site role create_workspace, an update the right to manage the workspace. `steps` says what was done.
    """
    try:
        declaration = parse_declaration(request.body)
    except DeclarationError as error:
        errors = [{"field": fault.path or None, "message": str(fault)} for fault in error.faults]
        return problem(422, "The declaration cannot be read as it stands.", errors=errors)
    applied = apply_declaration(actor=request.actor, declaration=declaration)
    steps = [{"did": step.did, "words": step.words} for step in applied.steps]
    return Status(201 if applied.is_new else 200, workspace_out(applied.workspace) | {"steps": steps})


def workspace_out(row: Workspace) -> dict[str, Any]:
    return {
        "id": row.public_id,
        "uuid": row.pk,
        "status": row.status,
        "slug": row.slug,
        "name": row.name,
        "created_at": row.created_at,
        "url": reverse("workspace-settings", args=[row.slug]),
    }


def _mine(request: ApiRequest) -> list[Workspace]:
    actor = request.actor
    assert actor.user is not None
    return [row for row in workspaces_of(actor.user) if actor.token_workspace_id in (None, row.pk)]
