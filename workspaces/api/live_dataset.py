"""Live datasets: let runs add to one, cut a window off it, see the pieces."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from ninja import Schema, Status
from pydantic import Field

from workspaces import ids
from workspaces.access import Kind, Permission
from workspaces.api.dataset import whole
from workspaces.api.dataset_shapes import DatasetOut
from workspaces.api.door import ApiRequest, Routes
from workspaces.api.registry_shapes import Body, Cursor, Line, Size, made_before
from workspaces.commands.live_dataset import cut_window, make_live
from workspaces.models import Dataset, DatasetPiece
from workspaces.queries.paging import newest_first

routes = Routes("datasets")
Records = Annotated[int, Field(ge=1, le=10**12, strict=True)]


class LiveIn(Body):
    window_records: Records | None = None
    records_a_day: Records | None = Field(None, description="Faster growth is flagged; by its last four windows where this is left out.")
    reason: Line = Field("", max_length=1000)


class WindowIn(Body):
    records: Records | None = None
    reason: Line = Field("", max_length=1000)


class PieceOut(Schema):
    id: str
    uuid: UUID
    number: int
    path: str
    sha256: str
    bytes: int
    records: int
    is_counted: bool = Field(description="They were counted in the file; else they are what the run said.")
    made_by_run_id: str
    artifact_id: str | None  # of that run, whose content it is
    window_id: str | None
    created_at: datetime


class PieceList(Schema):
    items: list[PieceOut]
    next: str | None


@routes.post("/datasets/{dataset}/live", needs=Permission.EDIT_REGISTRY, kind=Kind.DATASET, response=DatasetOut)
def post_live(request: ApiRequest, dataset: str, body: LiveIn) -> Any:
    """Let runs add to the dataset; with `window_records`, a window is cut by itself once so many records wait."""
    found = make_live(actor=request.actor, dataset=Dataset.objects.find(dataset), **body.dict())
    return whole(request, found)


@routes.post("/datasets/{dataset}/windows", needs=Permission.IMPORT_DATA, kind=Kind.DATASET, response=DatasetOut, status=201)
def post_window(request: ApiRequest, dataset: str, body: WindowIn | None = None) -> Any:
    """Freeze what waits as the next window, a dataset of its own; with `records`, the oldest pieces that hold at least so many."""
    records, reason = (body.records, body.reason) if body else (None, "")
    found = Dataset.objects.find(dataset)
    window = made_before(request, Dataset) or cut_window(
        actor=request.actor, dataset=found, records=records, reason=reason, id=request.chosen_id
    )
    return Status(201, whole(request, window))


@routes.get("/datasets/{dataset}/pieces", needs=Permission.VIEW, kind=Kind.DATASET, response=PieceList)
def list_pieces(request: ApiRequest, dataset: str, cursor: Cursor = "", limit: Size = 50) -> Any:
    """What runs have added, newest first: which run, how many records, and the window that holds it."""
    rows = DatasetPiece.objects.filter(dataset=Dataset.objects.find(dataset)).select_related("blob", "window")
    page = newest_first(rows, cursor=cursor, size=limit)
    return {"items": [_piece(piece) for piece in page.items], "next": page.next}


def _piece(piece: DatasetPiece) -> dict[str, Any]:
    return {
        "id": piece.public_id, "uuid": piece.pk, "number": piece.number, "path": piece.path, "sha256": piece.blob.sha256,
        "bytes": piece.blob.bytes, "records": piece.records, "is_counted": piece.is_counted,
        "made_by_run_id": ids.canonical("run", None, piece.made_by_run_id),
        "artifact_id": ids.canonical("art", None, piece.source_artifact_id) if piece.source_artifact_id else None,
        "window_id": piece.window.public_id if piece.window else None, "created_at": piece.created_at,
    }  # fmt: skip
