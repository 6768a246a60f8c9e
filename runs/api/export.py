"""`/exports`: ask for one, see how far it is, take it away as a tar file."""

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from django.http import HttpResponseBase
from django.urls import reverse
from ninja import Schema, Status
from pydantic import Field

from runs.commands.export import record_download, remove_export, request_export
from runs.export_tar import tar_bytes, tar_stream
from runs.models import Export
from runs.queries.export_list import download_of, page_of_exports, progress_of
from workspaces.access import Kind, Permission
from workspaces.api.door import ApiRequest, Routes
from workspaces.api.registry_shapes import Body, Cursor, Line, Size, made_before
from workspaces.downloads import attachment

routes = Routes("exports")


class ExportIn(Body):
    files: Literal["none", "public", "internal"] = Field(
        "none", description="Whose content travels besides the rows; restricted things never do."
    )
    reason: Line = Field("", max_length=1000, description="Demanded where files are internal.")


class ExportProgressOut(Schema):
    place: int
    count: int
    name: str


class ExportOut(Schema):
    id: str
    uuid: UUID
    status: str = Field(description="queued, running, ready, taken, failed or removed.")
    number: int
    files: str
    reason: str
    failure: str
    bytes: int | None
    manifest_sha256: str
    left_out: list[dict[str, Any]]
    progress: ExportProgressOut | None
    created_at: datetime
    ended_at: datetime | None
    expires_at: datetime | None
    url: str


class ExportPage(Schema):
    items: list[ExportOut]
    next: str | None


@routes.get("/exports", needs=Permission.EXPORT, kind=Kind.WORKSPACE, response=ExportPage)
def list_exports(request: ApiRequest, cursor: Cursor = "", limit: Size = 50) -> Any:
    """Exports, newest first."""
    page = page_of_exports(cursor=cursor, size=limit)
    return {"items": [_out(request, row) for row in page.items], "next": page.next}


@routes.post("/exports", needs=Permission.EXPORT, kind=Kind.WORKSPACE, response=ExportOut, status=201)
def post_export(request: ApiRequest, body: ExportIn) -> Any:
    """Ask for an export; one is made at a time."""
    export = made_before(request, Export) or request_export(actor=request.actor, id=request.chosen_id, **body.dict())
    return Status(201, _out(request, export))


@routes.get("/exports/{export}", needs=Permission.EXPORT, kind=Kind.WORKSPACE, response=ExportOut)
def get_export(request: ApiRequest, export: str) -> Any:
    """One export, and how far it is."""
    return _out(request, Export.objects.find(export))


@routes.post("/exports/{export}/download", needs=Permission.EXPORT, kind=Kind.WORKSPACE)
def download_export(request: ApiRequest, export: str) -> HttpResponseBase:
    """The export as one tar file. A POST: whoever takes it away is on record."""
    found = record_download(actor=request.actor, export=Export.objects.find(export))
    place = download_of(request.workspace, found)
    stream = tar_stream(place.folder, root=place.name, mtime=place.mtime)
    return attachment(stream, path=f"{place.name}.tar", size=tar_bytes(place.folder), sha256=found.manifest_sha256)


@routes.post("/exports/{export}/remove", needs=Permission.EXPORT, kind=Kind.WORKSPACE, response=ExportOut)
def post_removal(request: ApiRequest, export: str) -> Any:
    """Give its room back before its days are over."""
    return _out(request, remove_export(actor=request.actor, export=Export.objects.find(export)))


def _out(request: ApiRequest, export: Export) -> dict[str, Any]:
    progress = progress_of(export)
    copied = ("status", "number", "files", "reason", "failure", "bytes", "manifest_sha256", "created_at", "ended_at", "expires_at")
    return {name: getattr(export, name) for name in copied} | {
        "id": export.public_id,
        "uuid": export.pk,
        "left_out": export.contents.get("left_out", []),
        "progress": {"place": progress.place, "count": progress.count, "name": progress.name} if progress else None,
        "url": reverse("export", args=[request.workspace.slug, export.public_id]),
    }
