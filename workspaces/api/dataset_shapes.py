"""Answers and bodies of datasets."""

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from ninja import Schema
from pydantic import Field

from workspaces import ids
from workspaces.api.door import ApiRequest
from workspaces.api.registry_shapes import Body, Line, address, named
from workspaces.models import Dataset, DatasetFile, DatasetVersion


class DatasetIn(Body):
    slug: Line = Field(max_length=64)
    name: Line = Field("", max_length=200)
    description: Line = Field("", max_length=20_000)
    origin: Literal["private", "benchmark", "external", "self_play", "reusable"] = "private"
    evidence: Line = Field("", max_length=2000, description="What shows that it is of this origin.")
    licence: Line = Field("", max_length=200, description="SPDX expression; `not known` is kept as NOASSERTION.")


class FileOut(Schema):
    path: str
    sha256: str
    bytes: int
    url: str


class DatasetVersionOut(Schema):
    id: str
    uuid: UUID
    number: int
    role: str
    content_hash: str
    hash_form: int = Field(description="1: SHA-256 of the manifest as one list. 2: root of the manifest's Merkle tree (RFC 6962).")
    bytes: int
    records: int | None
    source: str
    origin: str = Field(description="As it was when the version was frozen; empty for what was frozen before that was kept.")
    licence: str
    evidence: str
    imported_by: str
    source_artifact_id: str | None
    files: list[FileOut] | None = None
    created_at: datetime
    url: str


class DatasetVersionList(Schema):
    items: list[DatasetVersionOut]
    next: str | None


class DatasetOut(Schema):
    id: str
    uuid: UUID
    status: Literal["defined", "declared"]
    slug: str
    name: str
    description: str
    origin: str
    evidence: str
    licence: str
    egress: str = Field(description="public, internal or restricted: what of it may leave the workspace.")
    version: DatasetVersionOut | None
    created_at: datetime
    url: str


class DatasetList(Schema):
    items: list[DatasetOut]
    next: str | None


def dataset_version_out(
    request: ApiRequest, dataset: Dataset, version: DatasetVersion, files: list[DatasetFile] | None = None
) -> dict[str, Any]:
    return {
        "id": version.public_id,
        "uuid": version.pk,
        "number": version.number,
        "role": version.role,
        "content_hash": version.content_hash,
        "bytes": version.bytes,
        "hash_form": version.hash_form,
        "records": version.records,
        "source": version.source,
        "origin": version.origin,
        "licence": version.licence,
        "evidence": version.evidence,
        "imported_by": version.created_by.username,
        "source_artifact_id": ids.canonical("art", None, version.source_artifact_id) if version.source_artifact_id else None,
        "files": None
        if files is None
        else [
            {
                "path": file.path,
                "sha256": file.blob.sha256,
                "bytes": file.blob.bytes,
                "url": address(request, "dataset-file", dataset.slug, str(version.number), file.path),
            }
            for file in files
        ],
        "created_at": version.created_at,
        "url": address(request, "dataset", dataset.slug),
    }


def dataset_out(request: ApiRequest, dataset: Dataset, version: DatasetVersion | None) -> dict[str, Any]:
    return {
        **named(dataset),
        "status": "defined" if version else "declared",
        "origin": dataset.origin,
        "evidence": dataset.evidence,
        "licence": dataset.licence,
        "egress": dataset.egress,
        "version": dataset_version_out(request, dataset, version) if version else None,
        "url": address(request, "dataset", dataset.slug),
    }
