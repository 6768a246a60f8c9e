"""The workspace itself: what it is, what its creation still lacks, settling it, opening it for launches."""

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from django.urls import reverse
from ninja import Schema
from pydantic import Field

from workspaces.access import Kind, Permission
from workspaces.api.door import ApiRequest, Routes
from workspaces.api.registry_shapes import Body, Line
from workspaces.commands.workspace import activate_workspace, configure_workspace
from workspaces.models import Workspace
from workspaces.queries.workspace import creation_steps

routes = Routes("workspace")


class StepOut(Schema):
    name: str
    words: str
    is_done: bool
    missing: str


class WorkspaceDetail(Schema):
    id: str
    uuid: UUID
    slug: str
    name: str
    status: str
    boundary_kind: str
    boundary_reason: str
    billing_account: str
    cost_centre: str
    zone: str
    week_start: int = Field(description="0 Monday … 6 Sunday")
    visibility: str
    region: str
    created_at: datetime
    activated_at: datetime | None
    url: str
    steps: list[StepOut] = Field(description="Of its creation; it launches nothing before all are done.")


class WorkspacePatch(Body):
    name: Line | None = Field(None, min_length=1, max_length=200)
    boundary_kind: Literal["customer", "team", "project", "security_boundary", "billing_account"] | None = None
    boundary_reason: Line | None = Field(None, max_length=1000)
    billing_account: Line | None = Field(None, max_length=200)
    cost_centre: Line | None = Field(None, max_length=200)
    zone: Line | None = Field(None, max_length=64)
    week_start: int | None = Field(None, ge=0, le=6)
    visibility: Literal["private", "public_benchmarks"] | None = None
    region: Line | None = Field(None, max_length=64)
    reason: Line = Field("", max_length=1000)


@routes.get("", needs=Permission.VIEW, kind=Kind.WORKSPACE, response=WorkspaceDetail)
def get_workspace(request: ApiRequest) -> Any:
    """What the workspace is, and which steps of its creation are done."""
    return _shape(request.workspace)


@routes.patch("", needs=Permission.MANAGE_WORKSPACE, kind=Kind.WORKSPACE, response=WorkspaceDetail)
def patch_workspace(request: ApiRequest, body: WorkspacePatch) -> Any:
    """Settle or change what the workspace is; keys that are left out stay."""
    settled = {name: value for name, value in body.dict(exclude={"reason"}).items() if value is not None}
    return _shape(configure_workspace(actor=request.actor, reason=body.reason, **settled))


@routes.post("/activate", needs=Permission.MANAGE_WORKSPACE, kind=Kind.WORKSPACE, response=WorkspaceDetail)
def activate(request: ApiRequest) -> Any:
    """Open the workspace for launches; 409 names the steps that are missing."""
    return _shape(activate_workspace(actor=request.actor))


def _shape(workspace: Workspace) -> dict[str, Any]:
    copied = ("slug", "name", "status", "boundary_kind", "boundary_reason", "billing_account", "cost_centre", "zone", "week_start",
              "visibility", "region", "created_at", "activated_at")  # fmt: skip
    return {
        "id": workspace.public_id,
        "uuid": workspace.pk,
        **{name: getattr(workspace, name) for name in copied},
        "url": reverse("home", args=[workspace.slug]),
        "steps": [
            {"name": step.name, "words": step.words, "is_done": step.is_done, "missing": step.missing} for step in creation_steps(workspace)
        ],
    }
