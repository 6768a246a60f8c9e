"""`/objectives`: what the workspace tries to improve, now and before."""

from datetime import date, datetime
from typing import Any
from uuid import UUID

from django.urls import reverse
from ninja import Schema, Status
from pydantic import Field

from workspaces.access import Kind, Permission
from workspaces.api.door import ApiRequest, Routes
from workspaces.api.registry_shapes import Body, Cursor, Day, Line, Size, made_before
from workspaces.commands.objective import set_objective
from workspaces.models import Objective
from workspaces.queries.paging import newest_first

routes = Routes("objectives")


class ObjectiveIn(Body):
    statement: Line = Field(min_length=1, max_length=300)
    benchmark: Line | None = Field(None, max_length=100, description="id or slug")
    target: float | None = None
    due_on: Day | None = None
    reason: Line = Field("", max_length=1000)


class ObjectiveOut(Schema):
    id: str
    uuid: UUID
    status: str
    statement: str
    benchmark: str | None
    target: float | None
    due_on: date | None
    created_at: datetime
    url: str


class ObjectiveList(Schema):
    items: list[ObjectiveOut]
    next: str | None


@routes.get("/objectives", needs=Permission.VIEW, kind=Kind.WORKSPACE, response=ObjectiveList)
def list_objectives(request: ApiRequest, cursor: Cursor = "", limit: Size = 50) -> Any:
    """Objectives, newest first; the current one has the status `current`."""
    page = newest_first(Objective.objects.select_related("benchmark"), cursor=cursor, size=limit)
    return {"items": [_out(request, objective) for objective in page.items], "next": page.next}


@routes.post("/objectives", needs=Permission.MANAGE_WORKSPACE, kind=Kind.WORKSPACE, response=ObjectiveOut, status=201)
def post_objective(request: ApiRequest, body: ObjectiveIn) -> Any:
    """Set the objective; the one before stays on the record."""
    objective = made_before(request, Objective) or set_objective(actor=request.actor, id=request.chosen_id, **body.dict())
    return Status(201, _out(request, objective))


def _out(request: ApiRequest, objective: Objective) -> dict[str, Any]:
    return {
        "id": objective.public_id,
        "uuid": objective.pk,
        "status": "current" if objective.is_current else "earlier",
        "statement": objective.statement,
        "benchmark": objective.benchmark.public_id if objective.benchmark else None,
        "target": objective.target,
        "due_on": objective.due_on,
        "created_at": objective.created_at,
        "url": reverse("objective", args=[request.workspace.slug]),
    }
