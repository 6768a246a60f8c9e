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
from workspaces.queries.expected_growth import Expected


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


class GrowthOut(Schema):
    """What came lately, held against what is expected: what a person says, else three times what the last windows brought."""

    last_day: int = Field(description="Records of the last 24 hours.")
    records_a_day: int | None = Field(description="More than these are flagged; null while there is nothing to hold it against.")
    is_said: bool = Field(description="A person says how many, `records_a_day` of the dataset.")
    is_exceeded: bool


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
    is_live: bool = Field(description="It grows by the pieces that runs make; runs read its windows, never itself.")
    window_records: int | None = Field(description="A window is cut by itself once so many records wait; null: by hand.")
    records_a_day: int | None = Field(description="How many a person expects; null: by its last four windows.")
    growth: GrowthOut | None = Field(description="Of a live dataset.")
    window_of: str | None = Field(description="The live dataset that it is a window of.")
    window_number: int | None
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


def dataset_out(request: ApiRequest, dataset: Dataset, version: DatasetVersion | None, expected: Expected | None) -> dict[str, Any]:
    growth = ("last_day", "records_a_day", "is_said", "is_exceeded")
    return {
        **named(dataset),
        "status": "defined" if version else "declared",
        "origin": dataset.origin,
        "evidence": dataset.evidence,
        "licence": dataset.licence,
        "egress": dataset.egress,
        "is_live": dataset.is_live,
        "window_records": dataset.window_records,
        "records_a_day": dataset.records_a_day,
        "growth": {name: getattr(expected, name) for name in growth} if expected else None,
        "window_of": dataset.window_of.public_id if dataset.window_of else None,
        "window_number": dataset.window_number,
        "version": dataset_version_out(request, dataset, version) if version else None,
        "url": address(request, "dataset", dataset.slug),
    }
