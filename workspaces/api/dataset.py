"""`/datasets`: list, create, read, upload a version, download a file.

A version of one file is its raw body: `POST /datasets/<id>/versions?role=holdout&path=holdout.csv` with the file as body and its
Content-Length. Several files come as multipart/form-data, each a part named `file`, and a last field `complete=1`; the query is the same
without `path`. Files that came in pieces (`/uploads`) are named by `upload`, once or several times, and the body is empty.
"""

from typing import Annotated, Any, Literal
from urllib.parse import quote

from django.http import HttpResponseBase, JsonResponse
from django.urls import reverse
from django.utils import timezone
from ninja import Query, Schema, Status
from pydantic import Field

from workspaces import uploads
from workspaces.access import Kind, Permission
from workspaces.api.dataset_shapes import (
    DatasetIn,
    DatasetList,
    DatasetOut,
    DatasetVersionList,
    DatasetVersionOut,
    dataset_out,
    dataset_version_out,
)
from workspaces.api.door import ApiRequest, Routes
from workspaces.api.registry_shapes import Body, Cursor, Line, Size, Text, made_before
from workspaces.audit import Refusal
from workspaces.commands.dataset import create_dataset, import_dataset_version, set_origin
from workspaces.commands.upload import find_upload, finish_upload, forget_upload
from workspaces.downloads import stored_file
from workspaces.models import Dataset, DatasetVersion
from workspaces.queries.croissant import croissant_of
from workspaces.queries.expected_growth import expected_of
from workspaces.queries.paging import in_order
from workspaces.queries.registry import dataset_rows, files_of, find_file, find_version, newest_version, versions_of
from workspaces.queries.version_proof import proof_in

routes = Routes("datasets")


class OriginIn(Body):
    origin: Literal["private", "benchmark", "external", "self_play", "reusable"]
    licence: Line = Field("", max_length=200, description="SPDX expression; `not known` is kept as NOASSERTION.")
    evidence: Line = Field("", max_length=2000, description="What shows that it is of this origin.")
    reason: Line = Field(min_length=1, max_length=1000)


class ProofOut(Schema):
    version: str
    content_hash: str
    entry: str = Field(description="The file's line of the manifest, a JSON list of path, SHA-256 and bytes, exactly as it was hashed.")
    index: int
    count: int
    hashes: list[str] = Field(description="From the leaf to the root, lowest first.")


@routes.get("/datasets", needs=Permission.VIEW, kind=Kind.DATASET, response=DatasetList)
def list_datasets(request: ApiRequest, q: Text = "", cursor: Cursor = "", limit: Size = 50) -> Any:
    """Datasets, newest first; `q` looks for a text in name and slug."""
    page = dataset_rows(text=q, cursor=cursor, size=limit)
    return {
        "items": [dataset_out(request, row.dataset, row.version, row.expected) for row in page.items],
        "next": page.next,
    }


@routes.post("/datasets", needs=Permission.EDIT_REGISTRY, kind=Kind.DATASET, response=DatasetOut, status=201)
def post_dataset(request: ApiRequest, body: DatasetIn) -> Any:
    """Create a dataset without a version yet."""
    dataset = made_before(request, Dataset) or create_dataset(actor=request.actor, id=request.chosen_id, **body.dict())
    return Status(201, whole(request, dataset))


@routes.get("/datasets/{dataset}", needs=Permission.VIEW, kind=Kind.DATASET, response=DatasetOut)
def get_dataset(request: ApiRequest, dataset: str) -> Any:
    """One dataset with its newest version."""
    return whole(request, Dataset.objects.find(dataset))


@routes.post("/datasets/{dataset}/origin", needs=Permission.EDIT_REGISTRY, kind=Kind.DATASET, response=DatasetOut)
def post_origin(request: ApiRequest, dataset: str, body: OriginIn) -> Any:
    """Say which class a dataset is of, what shows it, and its licence. Versions keep what was said as they were frozen."""
    return whole(request, set_origin(actor=request.actor, dataset=Dataset.objects.find(dataset), **body.dict()))


@routes.get("/datasets/{dataset}/versions", needs=Permission.VIEW, kind=Kind.DATASET, response=DatasetVersionList)
def list_versions(request: ApiRequest, dataset: str, cursor: Cursor = "", limit: Size = 50) -> Any:
    """Every version, newest first, without files."""
    found = Dataset.objects.find(dataset)
    page = in_order(versions_of(found), lambda row: (-row.version.number,), cursor=cursor, size=limit)
    return {"items": [dataset_version_out(request, found, row.version) for row in page.items], "next": page.next}


@routes.get("/datasets/{dataset}/versions/{version}", needs=Permission.VIEW, kind=Kind.DATASET, response=DatasetVersionOut)
def get_version(request: ApiRequest, dataset: str, version: str) -> Any:
    """One version, by number or id, with its files."""
    found = Dataset.objects.find(dataset)
    frozen = find_version(found, version)
    return dataset_version_out(request, found, frozen, files_of(frozen))


@routes.post(
    "/datasets/{dataset}/versions", needs=Permission.IMPORT_DATA, kind=Kind.DATASET, response=DatasetVersionOut, status=201, streams=True
)
def post_version(
    request: ApiRequest,
    dataset: str,
    role: Literal["train", "validation", "holdout", "any"],
    path: Annotated[str, Query(max_length=1024)] = "",
    source: Annotated[str, Query(max_length=1000)] = "",
    records: Annotated[int | None, Query(ge=0, le=2**53)] = None,
    header: Literal["present", "absent"] = "present",
    licence: Annotated[str, Query(max_length=200)] = "",
    evidence: Annotated[str, Query(max_length=2000)] = "",
    unpack: Literal["", "archive"] = "",
    reason: Annotated[str, Query(max_length=1000)] = "",
    upload: Annotated[list[str] | None, Query(max_length=100)] = None,
) -> Any:
    """Upload the next version: one file as raw body with `path`, or several as multipart/form-data, or whole ones of `/uploads`
    by `upload`. `header`: of CSV files, for counting.
    `unpack=archive`: the one part is a zip or tar.gz, and the version is what is inside."""
    found = Dataset.objects.find(dataset)
    version = made_before(request, DatasetVersion)
    if version is None:
        whole_ones = [find_upload(request.actor, name) for name in dict.fromkeys(upload or ())]
        if whole_ones:
            files = [finish_upload(one) for one in whole_ones]
        elif unpack and not uploads.is_form(request):
            raise Refusal("To be unpacked, an archive comes as multipart/form-data, in a part named file.", field="unpack")
        elif unpack:
            files = uploads.receive_archive(request, "file", has_header=header == "present")
        elif uploads.is_form(request):
            files = uploads.receive_form_files(request, "file", has_header=header == "present")
        elif not path:
            raise Refusal("Say with ?path= under which name the file is kept, such as path=holdout.csv.", field="path")
        else:
            files = [uploads.receive_body(request, path, has_header=header == "present")]
        version = import_dataset_version(
            actor=request.actor, dataset=found, role=role, files=files, source=source, licence=licence, evidence=evidence, records=records,
            reason=reason, id=request.chosen_id,
        )  # fmt: skip
        for one in whole_ones:
            forget_upload(one)
    return Status(201, dataset_version_out(request, found, version, files_of(version)))


@routes.get("/datasets/{dataset}/versions/{version}/files/{path:file}", needs=Permission.VIEW, kind=Kind.DATASET)
def get_file(request: ApiRequest, dataset: str, version: str, file: str) -> HttpResponseBase:
    """The content of one file, as an attachment."""
    found = find_file(find_version(Dataset.objects.find(dataset), version), file)
    return stored_file(request, found.blob, path=found.path)


@routes.get("/datasets/{dataset}/croissant.json", needs=Permission.VIEW, kind=Kind.DATASET)
def get_croissant(request: ApiRequest, dataset: str, version: Annotated[str, Query(max_length=40)] = "") -> HttpResponseBase:
    """The newest version, or the one asked for, as Croissant 1.1 (JSON-LD)."""
    found = Dataset.objects.find(dataset)
    frozen = find_version(found, version) if version else newest_version(found)

    def address(path: str) -> str:
        number = frozen.number if frozen else 0
        return request.build_absolute_uri(
            f"/api/v1/workspaces/{request.workspace.slug}/datasets/{found.slug}/versions/{number}/files/{quote(path)}"
        )

    page = request.build_absolute_uri(reverse("dataset", args=[request.workspace.slug, found.slug]))
    return JsonResponse(croissant_of(found, frozen, page=page, address=address), content_type="application/ld+json")


@routes.get("/datasets/{dataset}/versions/{version}/proofs/{path:file}", needs=Permission.VIEW, kind=Kind.DATASET, response=ProofOut)
def get_proof(request: ApiRequest, dataset: str, version: str, file: str) -> Any:
    """What shows, from the version's `content_hash` alone, that the version holds this file (RFC 6962; docs/version_proof.md)."""
    return proof_in(find_version(Dataset.objects.find(dataset), version), file)


def whole(request: ApiRequest, dataset: Dataset) -> dict[str, Any]:
    rows = versions_of(dataset)
    expected = expected_of([dataset], now=timezone.now()).get(dataset.pk)
    return dataset_out(request, dataset, rows[0].version if rows else None, expected)
