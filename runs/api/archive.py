"""`/archive` and `/unarchive` of a workspace: nothing is launched or changed in an archive, everything can be read."""

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from django.urls import reverse
from ninja import Schema
from pydantic import Field

from runs.commands.archive import archive_workspace, unarchive_workspace
from workspaces.access import Kind, Permission
from workspaces.api.door import ApiRequest, Routes
from workspaces.api.registry_shapes import Body, Line
from workspaces.models import Workspace

routes = Routes("workspace")


class ArchiveIn(Body):
    running: Literal["go_on", "cancel"] = Field(description="What becomes of runs at work; those that wait are cancelled.")
    reason: Line = Field(min_length=1, max_length=1000)


class UnarchiveIn(Body):
    reason: Line = Field(min_length=1, max_length=1000)


class ArchiveOut(Schema):
    id: str
    uuid: UUID
    status: str
    archived_at: datetime | None
    url: str


@routes.post("/archive", needs=Permission.ARCHIVE, kind=Kind.WORKSPACE, response=ArchiveOut)
def archive(request: ApiRequest, body: ArchiveIn) -> Any:
    """Freeze the workspace: every further write answers 409, every read what it did before."""
    return _shape(archive_workspace(actor=request.actor, reason=body.reason, cancels_running=body.running == "cancel"))


@routes.post("/unarchive", needs=Permission.ARCHIVE, kind=Kind.WORKSPACE, response=ArchiveOut)
def unarchive(request: ApiRequest, body: UnarchiveIn) -> Any:
    """Open it again as it was. What was cancelled does not come back by itself."""
    return _shape(unarchive_workspace(actor=request.actor, reason=body.reason))


def _shape(workspace: Workspace) -> dict[str, Any]:
    return {
        "id": workspace.public_id,
        "uuid": workspace.pk,
        "status": workspace.status,
        "archived_at": workspace.archived_at,
        "url": reverse("home", args=[workspace.slug]),
    }
