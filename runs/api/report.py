"""What a run sends with its own token while it runs: metrics, events, artifacts. People read them here too."""

import math
from typing import Annotated, Any

from django.conf import settings
from ninja import Query, Status

from runs.api.artifact import named, shape_artifact
from runs.api.schema import ArtifactOut, EventsIn, PointsIn, SeriesPage, TakenOut
from runs.commands.report import report_events, report_points, sending_attempt, store_artifact
from runs.models import Artifact, MetricSeries, Run
from runs.pools.lines import Point
from workspaces import uploads
from workspaces.access import Kind, Permission
from workspaces.api.door import ApiRequest, Routes
from workspaces.api.registry_shapes import Cursor, Size, made_before
from workspaces.audit import Refusal
from workspaces.commands.upload import find_upload, finish_upload, forget_upload, run_holder
from workspaces.queries.paging import in_order

routes = Routes("metrics")

NAMED = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


@routes.get("/runs/{run}/metrics", needs=Permission.VIEW, kind=Kind.RUN, response=SeriesPage)
def list_series(request: ApiRequest, run: str, cursor: Cursor = "", limit: Size = settings.API_PAGE_SIZE) -> dict[str, Any]:
    """The run's metrics by key, one summary each."""
    rows = MetricSeries.objects.filter(run=Run.objects.find(run))
    page = in_order(rows, lambda series: (series.key,), cursor=cursor, size=limit)
    names = ("key", "count", "last", "last_step", "minimum", "maximum")
    return {
        "items": [
            {name: named(getattr(row, name)) if isinstance(getattr(row, name), float) else getattr(row, name) for name in names}
            for row in page.items
        ],
        "next": page.next,
    }


@routes.post("/runs/{run}/metrics", needs=Permission.LAUNCH_RUN, kind=Kind.RUN, response=TakenOut, by_run=True, telemetry=True)
def add_metrics(request: ApiRequest, run: str, body: PointsIn) -> dict[str, Any]:
    """Append points with the run's own token."""
    points = [
        Point(point.key, NAMED[point.value] if isinstance(point.value, str) else float(point.value), point.step, point.time)
        for point in body.points
    ]
    return {"taken": report_points(actor=request.actor, run=Run.objects.find(run), points=points)}


@routes.post("/runs/{run}/events", needs=Permission.LAUNCH_RUN, kind=Kind.RUN, response=TakenOut, by_run=True, telemetry=True)
def add_events(request: ApiRequest, run: str, body: EventsIn) -> dict[str, Any]:
    """Append event lines with the run's own token; types as in events.jsonl."""
    return {"taken": report_events(actor=request.actor, run=Run.objects.find(run), bodies=body.events)}


@routes.post(
    "/runs/{run}/artifacts", needs=Permission.LAUNCH_RUN, kind=Kind.ARTIFACT, response=ArtifactOut, status=201, by_run=True, streams=True
)
def add_artifact(
    request: ApiRequest,
    run: str,
    path: Annotated[str, Query(max_length=1024)] = "",
    name: Annotated[str, Query(max_length=250)] = "",
    kind: Annotated[str, Query(max_length=40)] = "file",
    upload: Annotated[str, Query(max_length=64)] = "",
) -> Status[dict[str, Any]]:
    """Keep a file that the run sends with its own token, or whoever asked for it: the raw body under `path`, or a whole one of the run's
    uploads, which has its path already."""
    found = Run.objects.find(run)
    artifact = made_before(request, Artifact)
    if artifact is None:
        sending_attempt(request.actor, found)  # before any byte is read
        whole = find_upload(request.actor, upload, holder=run_holder(found.pk)) if upload else None
        if whole is None and not path:
            raise Refusal("Say with ?path= under which name the file is kept, or name an upload.", field="path")
        file = finish_upload(whole) if whole is not None else uploads.receive_body(request, path)
        artifact = store_artifact(actor=request.actor, run=found, file=file, name=name, kind=kind, id=request.chosen_id)
        if whole is not None:
            forget_upload(whole)
    return Status(201, shape_artifact(request, artifact))
