"""`/datasets/<id>/imports`: have files read from other machines; `/dataset-imports`: those that a Croissant names;
`/datasets/<id>/from-artifact`: freeze what a run has made."""

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from django.urls import reverse
from ninja import Schema, Status
from pydantic import Field

from runs.commands.artifact_dataset import import_artifact
from runs.commands.croissant import import_croissant
from runs.commands.dataset_import import WantedFile, request_import
from runs.models import Artifact, DatasetImport
from runs.queries.dataset_import import page_of_imports, progress_of
from workspaces.access import Kind, Permission
from workspaces.api.dataset_shapes import DatasetVersionOut, dataset_version_out
from workspaces.api.door import ApiRequest, Routes
from workspaces.api.registry_shapes import Body, Cursor, Line, Size, made_before, named_by
from workspaces.audit import Refusal
from workspaces.models import Dataset, DatasetVersion, NotFound
from workspaces.queries.registry import files_of
from workspaces.queries.secret import usable_secrets

routes = Routes("datasets")
Role = Literal["train", "validation", "holdout", "any"]


class WantedIn(Body):
    address: Line = Field(
        min_length=1,
        max_length=2000,
        description="https://…, s3://bucket/key, or pool://<pool>/<absolute path>, below a folder that a site operator listed for the pool's engine.",
    )
    path: Line = Field("", max_length=1024, description="Under which name it is kept; its own where this is left out.")
    sha256: str = Field("", pattern=r"^([0-9a-fA-F]{64})?$", description="A file with another is refused.")
    bytes: int | None = Field(None, ge=1, le=2**53, strict=True)


class ImportIn(Body):
    role: Role
    files: list[WantedIn] = Field(min_length=1, max_length=1000)
    endpoint: Line = Field("", max_length=500, description="Of S3 addresses: scheme, host and port; Amazon's where it is left out.")
    region: Line = Field("", max_length=40)
    secret: Line = Field("", max_length=64, description="Name of a secret that holds ACCESS_KEY_ID:SECRET_ACCESS_KEY; needs manage_secret.")
    licence: Line = Field("", max_length=200, description="SPDX expression; the dataset's where it is left out.")
    evidence: Line = Field("", max_length=2000)
    records: int | None = Field(None, ge=0, le=2**53, strict=True)
    has_header: bool = True
    reason: Line = Field("", max_length=1000)


class CroissantIn(Body):
    document: dict[str, Any] = Field(description="Croissant 1.0 or 1.1: its JSON-LD.")
    slug: Line = Field(max_length=64)
    role: Role
    reason: Line = Field("", max_length=1000)


class ArtifactIn(Body):
    artifact: Line = Field(min_length=1, max_length=100)
    role: Role
    path: Line = Field("", max_length=1024)
    licence: Line = Field("", max_length=200)
    evidence: Line = Field("", max_length=2000)
    records: int | None = Field(None, ge=0, le=2**53, strict=True)
    reason: Line = Field("", max_length=1000)


class ReadOut(Schema):
    path: str
    sha256: str
    bytes: int
    etag: str


class ImportOut(Schema):
    id: str
    uuid: UUID
    status: str
    role: str
    source: str
    files: int
    read: list[ReadOut] = Field(description="What came, once it is done.")
    read_bytes: int | None = Field(description="Of the file that is being read.")
    failure: str
    version_id: str | None
    requested_by: str
    created_at: datetime
    ended_at: datetime | None
    url: str


class ImportList(Schema):
    items: list[ImportOut]
    next: str | None


@routes.get("/datasets/{dataset}/imports", needs=Permission.VIEW, kind=Kind.DATASET, response=ImportList)
def list_imports(request: ApiRequest, dataset: str, cursor: Cursor = "", limit: Size = 50) -> Any:
    """What was asked for, newest first, and what came of it."""
    page = page_of_imports(Dataset.objects.find(dataset), cursor=cursor, size=limit)
    return {"items": [_shape(request, asked) for asked in page.items], "next": page.next}


@routes.post("/datasets/{dataset}/imports", needs=Permission.IMPORT_DATA, kind=Kind.DATASET, response=ImportOut, status=201)
def post_import(request: ApiRequest, dataset: str, body: ImportIn) -> Any:
    """Ask for the next version to be read from https, s3 and pool addresses; a job reads it, and `status` says how it ended."""
    found = Dataset.objects.find(dataset)
    asked = made_before(request, DatasetImport)
    if asked is None:
        given = body.dict(exclude={"files", "secret"})
        secret = next((one for one in usable_secrets() if one.name == body.secret), None) if body.secret else None
        if body.secret and secret is None:
            raise Refusal("There is no such secret here.", field="secret")
        files = [WantedFile(entry.address, entry.path, entry.sha256, entry.bytes) for entry in body.files]
        asked = request_import(actor=request.actor, dataset=found, files=files, secret=secret, id=request.chosen_id, **given)
    return Status(201, _shape(request, asked))


@routes.post("/dataset-imports", needs=Permission.IMPORT_DATA, kind=Kind.DATASET, response=ImportOut, status=201)
def post_croissant(request: ApiRequest, body: CroissantIn) -> Any:
    """Make a dataset of what a Croissant says, and have its files read; each must have the SHA-256 that the Croissant names."""
    asked = made_before(request, DatasetImport) or import_croissant(actor=request.actor, id=request.chosen_id, **body.dict())
    return Status(201, _shape(request, asked))


@routes.get("/datasets/{dataset}/imports/{datasetimport}", needs=Permission.VIEW, kind=Kind.DATASET, response=ImportOut)
def get_import(request: ApiRequest, dataset: str, datasetimport: str) -> Any:
    """How far one is, what came, or why nothing did."""
    asked = DatasetImport.objects.find(datasetimport, "dataset", "requested_by", "version")
    if asked.dataset_id != Dataset.objects.find(dataset).pk:
        raise NotFound("import")
    return _shape(request, asked)


@routes.post("/datasets/{dataset}/from-artifact", needs=Permission.IMPORT_DATA, kind=Kind.DATASET, response=DatasetVersionOut, status=201)
def post_from_artifact(request: ApiRequest, dataset: str, body: ArtifactIn) -> Any:
    """Freeze an artifact of a run as the next version, derived from it; no byte is copied."""
    found = Dataset.objects.find(dataset)
    version = made_before(request, DatasetVersion)
    if version is None:
        artifact = named_by(Artifact, body.artifact, "artifact")
        assert artifact is not None
        version = import_artifact(
            actor=request.actor, dataset=found, artifact=artifact, id=request.chosen_id, **body.dict(exclude={"artifact"})
        )
    return Status(201, dataset_version_out(request, found, version, files_of(version)))


def _shape(request: ApiRequest, asked: DatasetImport) -> dict[str, Any]:
    progress = progress_of(asked)
    return {
        "id": asked.public_id,
        "uuid": asked.pk,
        "status": asked.status,
        "role": asked.role,
        "source": asked.source,
        "files": len(asked.sources),
        "read": asked.found,
        "read_bytes": progress.read if progress else None,
        "failure": asked.failure,
        "version_id": asked.version.public_id if asked.version else None,
        "requested_by": asked.requested_by.username,
        "created_at": asked.created_at,
        "ended_at": asked.ended_at,
        "url": reverse("dataset-import", args=[request.workspace.slug, asked.dataset.slug, asked.public_id]),
    }
