"""Sweeps: ask for all members of a search space at once, look how far they are, stop."""

from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any, Literal

from django.conf import settings
from django.urls import reverse
from ninja import Schema, Status
from pydantic import Field, StringConstraints

from runs.api.artifact import named
from runs.api.run import launch_request
from runs.api.schema import NAMED_FLOATS, LaunchIn, ReasonIn, Strict
from runs.commands.sweep import create_sweep
from runs.commands.sweep import stop as stop_sweep
from runs.models import Run, Sweep
from runs.queries.sweep import Progress, find_sweep, list_sweeps, progress_of, table_of, words_of
from workspaces import ids
from workspaces.access import Kind, Permission
from workspaces.api.door import ApiRequest, Routes
from workspaces.api.registry_shapes import Cursor, Line, Size
from workspaces.queries.paging import in_order

routes = Routes("sweeps")


class SpaceIn(Strict):
    """A grid of values, or a sampler that draws `count` points; each point is run once for each of `seeds`."""

    kind: Literal["grid", "sampler"]
    axes: Annotated[dict[str, Any], Field(max_length=16)] = {}
    seeds: Annotated[list[Annotated[int, Field(ge=0, lt=2**63, strict=True)]], Field(max_length=1_000)] = []
    count: Annotated[int, Field(ge=0, lt=2**63, strict=True)] | None = None
    seed: Annotated[int, Field(ge=0, lt=2**63, strict=True)] | None = None


class SweepIn(LaunchIn):
    """A launch, and the space over its parameters; the budget is of each member."""

    space: SpaceIn
    name: Annotated[Line, StringConstraints(max_length=180)] = ""


class ProgressOut(Schema):
    members: int
    launched: int
    waiting: int
    active: int
    succeeded: int
    failed: int


class SweepOut(Schema):
    id: str
    uuid: str
    status: str
    url: str
    name: str
    number: int
    reason: str
    purpose: str
    benchmark_id: str
    agent_id: str
    agent_version: int
    compute_pool_id: str
    space: dict[str, Any]
    members: str
    gpu_ms_each: int
    requested_by: str
    created_at: datetime
    ended_at: datetime | None
    progress: ProgressOut


class SweepPage(Schema):
    items: list[SweepOut]
    next: str | None


class SweepMemberOut(Schema):
    member: int
    run_id: str
    status: str
    parameters: dict[str, Any]
    score: float | NAMED_FLOATS | None
    standard_error: float | NAMED_FLOATS | None
    scored_by: str | None
    metrics: dict[str, float | NAMED_FLOATS]
    spent_gpu_ms: int


class MembersOut(Schema):
    metric: str
    direction: str
    items: list[SweepMemberOut]
    next: str | None


@routes.get("/sweeps", needs=Permission.VIEW, kind=Kind.RUN, response=SweepPage)
def list_all(request: ApiRequest, cursor: Cursor = "", limit: Size = settings.API_PAGE_SIZE) -> dict[str, Any]:
    """Sweeps of the workspace, newest first."""
    found = list_sweeps(cursor=cursor, size=limit)
    progress = progress_of(found.items)
    return {"items": [_row(request, sweep, progress[sweep.pk]) for sweep in found.items], "next": found.next}


@routes.post("/sweeps", needs=Permission.LAUNCH_RUN, kind=Kind.RUN, response=SweepOut, status=201)
def create(request: ApiRequest, body: SweepIn) -> Status[dict[str, Any]]:
    """Ask for a sweep. 409 with the arithmetic where all members together do not fit into a hard limit."""
    asked = replace(launch_request(body), name="", reason="")
    space = body.space.model_dump(exclude_defaults=True)
    sweep = create_sweep(actor=request.actor, name=body.name, space=space, request=asked, purpose=body.reason, sweep_id=request.chosen_id)
    return Status(201, shape(request, sweep))


@routes.get("/sweeps/{sweep}", needs=Permission.VIEW, kind=Kind.RUN, response=SweepOut)
def get_sweep(request: ApiRequest, sweep: str) -> dict[str, Any]:
    """One sweep and how far it is."""
    return shape(request, find_sweep(sweep))


@routes.get("/sweeps/{sweep}/members", needs=Permission.VIEW, kind=Kind.RUN, response=MembersOut)
def get_members(request: ApiRequest, sweep: str, cursor: Cursor = "", limit: Size = settings.API_PAGE_SIZE) -> dict[str, Any]:
    """Members launched so far, best first: what was varied, the score, the last value of each metric. Of a sweep with more than 500 members
    the best 500; `/runs?sweep=` lists the runs of all."""
    table = table_of(find_sweep(sweep))
    page = in_order(table.rows, table.place, cursor=cursor, size=limit)
    return {
        "metric": table.contract.metric,
        "direction": table.contract.direction,
        "items": [
            {
                "member": row.number, "run_id": row.run.public_id, "status": row.run.status, "parameters": row.parameters,
                "score": named(row.score.value) if row.score else None,
                "standard_error": named(row.score.standard_error) if row.score else None,
                "scored_by": ids.canonical(Run.prefix, None, row.score.by_run) if row.score else None,
                "metrics": {key: named(value) for key, value in row.metrics.items()}, "spent_gpu_ms": row.run.spent_gpu_ms,
            }
            for row in page.items
        ],
        "next": page.next,
    }  # fmt: skip


@routes.post("/sweeps/{sweep}/stop", needs=Permission.CANCEL_RUN, kind=Kind.RUN, response=SweepOut)
def stop(request: ApiRequest, sweep: str, body: ReasonIn | None = None) -> dict[str, Any]:
    """Launch no more members; those under way go on. Another person's sweep needs a reason."""
    found = find_sweep(sweep)
    stop_sweep(actor=request.actor, sweep=found, reason=body.reason if body else "")
    return shape(request, find_sweep(sweep))


def shape(request: ApiRequest, sweep: Sweep) -> dict[str, Any]:
    return _row(request, sweep, progress_of([sweep])[sweep.pk])


def _row(request: ApiRequest, sweep: Sweep, progress: Progress) -> dict[str, Any]:
    return {
        "id": sweep.public_id, "uuid": str(sweep.pk), "status": sweep.status, "url": reverse("sweep", args=[request.workspace.slug, sweep.public_id]),
        "name": sweep.name, "number": sweep.number, "reason": sweep.reason, "purpose": sweep.purpose, "benchmark_id": sweep.benchmark.public_id,
        "agent_id": sweep.agent.public_id, "agent_version": sweep.agent_version.number, "compute_pool_id": sweep.pool.public_id,
        "space": sweep.space, "members": words_of(sweep), "gpu_ms_each": sweep.gpu_ms_each, "requested_by": sweep.requested_by.username,
        "created_at": sweep.created_at, "ended_at": sweep.ended_at,
        "progress": {name: getattr(progress, name) for name in ("members", "launched", "waiting", "active", "succeeded", "failed")},
    }  # fmt: skip
