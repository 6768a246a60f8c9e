"""Artifacts: what runs have made."""

import math
from typing import Any

from django.conf import settings
from django.http.response import HttpResponseBase
from django.urls import reverse
from ninja import Schema
from pydantic import Field

from runs.api.schema import ArtifactOut, ArtifactPage
from runs.commands.artifact import delete_artifact, remove_artifact, restore_artifact, set_artifact_days, set_keep_until
from runs.models import Artifact, Run
from workspaces.access import Kind, Permission
from workspaces.api.door import ApiRequest, Routes
from workspaces.api.registry_shapes import Body, Cursor, Instant, Line, Size, Text, named_by
from workspaces.downloads import stored_file
from workspaces.models import NotFound, Withdrawal
from workspaces.queries.paging import newest_first
from workspaces.queries.withdrawal import standing_on

routes = Routes("artifacts")


@routes.get("/artifacts", needs=Permission.VIEW, kind=Kind.ARTIFACT, response=ArtifactPage)
def list_artifacts(
    request: ApiRequest, cursor: Cursor = "", limit: Size = settings.API_PAGE_SIZE, run: Text = "", kind: Text = "", deleted: bool = False
) -> dict[str, Any]:
    """Artifacts, newest first; of one run, or of one kind, where asked; or those that are removed or to be removed."""
    rows = Artifact.objects.filter(deleted_at__isnull=not deleted).select_related("run", "blob")
    made_by = named_by(Run, run, "run")
    if made_by:
        rows = rows.filter(run=made_by)
    if kind:
        rows = rows.filter(kind=kind)
    found = newest_first(rows, cursor=cursor, size=limit)
    return {"items": shape_artifacts(request, found.items), "next": found.next}


@routes.get("/artifacts/{artifact}", needs=Permission.VIEW, kind=Kind.ARTIFACT, response=ArtifactOut)
def get_artifact(request: ApiRequest, artifact: str) -> dict[str, Any]:
    """One artifact; `url` serves its bytes."""
    return shape_artifact(request, Artifact.objects.find(artifact, "run", "blob"))


@routes.get("/artifacts/{artifact}/content", needs=Permission.VIEW, kind=Kind.ARTIFACT)
def get_artifact_content(request: ApiRequest, artifact: str) -> HttpResponseBase:
    """The bytes of an artifact, as an attachment."""
    found = Artifact.objects.find(artifact, "blob")
    if found.removed_at is not None:
        raise NotFound("file")
    return stored_file(request, found.blob, path=found.path)


class DeletionIn(Body):
    reason: Line = Field(min_length=1, max_length=1000)


class KeepIn(Body):
    until: Instant | None = Field(
        description="When it is to be removed, as if somebody had deleted it then; null: as its kind says, or never."
    )
    reason: Line = Field("", max_length=1000)


class DaysIn(Body):
    days: dict[str, int] = Field(max_length=50, description="Days by kind; a kind that is not named stays.")
    reason: Line = Field(min_length=1, max_length=1000)


class DaysOut(Schema):
    days: dict[str, int]


@routes.post("/artifacts/{artifact}/keep", needs=Permission.EDIT_REGISTRY, kind=Kind.ARTIFACT, response=ArtifactOut)
def keep_artifact(request: ApiRequest, artifact: str, body: KeepIn) -> dict[str, Any]:
    """Until when it is kept; what rests on it keeps it longer."""
    return _acted(request, set_keep_until(actor=request.actor, artifact=Artifact.objects.find(artifact), **body.dict()))


@routes.post("/artifacts/{artifact}/delete", needs=Permission.EDIT_REGISTRY, kind=Kind.ARTIFACT, response=ArtifactOut)
def post_deletion(request: ApiRequest, artifact: str, body: DeletionIn) -> dict[str, Any]:
    """Let it be removed at `goes_at`; until then it is hidden, it can be restored, and its bytes count. 409 with the list of what rests on it."""
    return _acted(request, delete_artifact(actor=request.actor, artifact=Artifact.objects.find(artifact), reason=body.reason))


@routes.post("/artifacts/{artifact}/restore", needs=Permission.EDIT_REGISTRY, kind=Kind.ARTIFACT, response=ArtifactOut)
def post_restoration(request: ApiRequest, artifact: str) -> dict[str, Any]:
    """Bring an artifact that is to be removed back."""
    return _acted(request, restore_artifact(actor=request.actor, artifact=Artifact.objects.find(artifact)))


@routes.post("/artifacts/{artifact}/remove", needs=Permission.EDIT_REGISTRY, kind=Kind.ARTIFACT, response=ArtifactOut)
def post_removal(request: ApiRequest, artifact: str) -> dict[str, Any]:
    """Remove the file of an artifact that is to be removed now, for good; its bytes are free once this answers."""
    return _acted(request, remove_artifact(actor=request.actor, artifact=Artifact.objects.find(artifact)))


@routes.get("/artifact-days", needs=Permission.VIEW, kind=Kind.ARTIFACT, response=DaysOut)
def get_days(request: ApiRequest) -> dict[str, Any]:
    """For how many days artifacts of a kind are kept."""
    return {"days": request.workspace.artifact_days}


@routes.post("/artifact-days", needs=Permission.MANAGE_WORKSPACE, kind=Kind.WORKSPACE, response=DaysOut)
def post_days(request: ApiRequest, body: DaysIn) -> dict[str, Any]:
    """Set all of them anew."""
    return {"days": set_artifact_days(actor=request.actor, days=body.days, reason=body.reason).artifact_days}


def _acted(request: ApiRequest, artifact: Artifact) -> dict[str, Any]:
    return shape_artifact(request, Artifact.objects.select_related("run", "blob").get(pk=artifact.pk))


def shape_artifact(request: ApiRequest, artifact: Artifact) -> dict[str, Any]:
    return shape_artifacts(request, [artifact])[0]


def shape_artifacts(request: ApiRequest, artifacts: list[Artifact]) -> list[dict[str, Any]]:
    """One statement more, however many there are; each has its run and its blob."""
    marked = standing_on(("artifact", artifact.pk) for artifact in artifacts)
    return [_shape(request, artifact, marked.get(("artifact", artifact.pk), [])) for artifact in artifacts]


def _shape(request: ApiRequest, artifact: Artifact, withdrawn_by: list[Withdrawal]) -> dict[str, Any]:
    return {
        "id": artifact.public_id,
        "uuid": str(artifact.pk),
        "url": reverse("artifact-file", args=[request.workspace.slug, artifact.public_id]),
        "run_id": artifact.run.public_id,
        "name": artifact.name,
        "path": artifact.path,
        "kind": artifact.kind,
        "bytes": artifact.blob.bytes,
        "sha256": artifact.blob.sha256,
        "created_at": artifact.created_at,
        "status": "removed" if artifact.removed_at else "deleted" if artifact.deleted_at else "kept",
        "keep_until": artifact.keep_until,
        "goes_at": artifact.goes_at,
        "is_missing": artifact.removed_at is None and artifact.blob.missing_at is not None,
        "withdrawn_by": [withdrawal.public_id for withdrawal in withdrawn_by],
    }


def named(value: float | None) -> float | str | None:
    """NaN and infinities by name: JSON has no word for them."""
    if value is None or math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
