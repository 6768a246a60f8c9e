"""Overlap with holdouts: the verdict on a version, its comparisons, where records stand, checking anew, and what people say."""

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from django.conf import settings
from ninja import Schema, Status
from pydantic import Field

from runs.commands.overlap import ask_overlap_check, overrule_verdict, set_reusable
from runs.models import OverlapCheck
from runs.queries.overlap import checks_of, find_check
from runs.queries.verdict import verdict_of
from workspaces.access import Kind, Permission
from workspaces.api.door import ApiRequest, Routes
from workspaces.api.registry_shapes import Body, Cursor, Line, Size
from workspaces.models import Dataset, DatasetVersion
from workspaces.queries.paging import newest_first
from workspaces.queries.registry import find_version

routes = Routes("datasets")
overlaps = Routes("datasets")
Word = Literal["contaminated", "suspicious", "clean", "unknown"]


class VerdictIn(Body):
    verdict: Word | Literal[""] = Field(description="What holds in a person's word; empty lets the checks speak again.")
    reason: Line = Field(min_length=1, max_length=1000)


class ReuseIn(Body):
    is_reusable: bool = Field(strict=True)
    reason: Line = Field(min_length=1, max_length=1000)


class VerdictOut(Schema):
    """`verdict` is what holds; `checked` what the checks say. They differ where a person overruled them, or had done so before another holdout came
    (`is_word_waiting`: it may hold again once all is compared)."""

    dataset_id: str
    version: int
    verdict: Literal["unchecked", "contaminated", "suspicious", "clean", "unknown"]
    reason: str
    checked: Literal["unchecked", "contaminated", "suspicious", "clean", "unknown"]
    checked_reason: str
    is_promotable: bool
    is_overruled: bool
    overruled_by: str | None
    is_word_waiting: bool
    contaminated_reason: str = Field(
        description="Why it is contaminated by the last word on it, also while it is compared anew; else empty."
    )
    is_reusable: bool | None
    reuse_reason: str


class OverlapOut(Schema):
    """One comparison: `exact` records of the version stand in the holdout, `near` ones nearly do."""

    id: str
    uuid: UUID
    dataset_id: str
    version: int
    holdout_dataset_id: str
    holdout_version: int
    verdict: Word
    exact: int
    near: int
    is_least: bool = Field(description="There may be more near ones.")
    reason: str
    checked_at: datetime


class OverlapList(Schema):
    items: list[OverlapOut]
    next: str | None


class PlaceOut(Schema):
    path: str
    number: int = Field(description="Counted within its file, from 1.")
    place: int = Field(description="Byte at which it begins; its row, where `length` is 0.")
    length: int


class PairOut(Schema):
    kind: Literal["exact", "near"]
    similarity: float
    record: PlaceOut
    holdout: PlaceOut


class OverlapWhole(OverlapOut):
    pairs: list[PairOut] = Field(description="A hundred at most.")


@routes.get("/datasets/{dataset}/versions/{version}/verdict", needs=Permission.VIEW, kind=Kind.DATASET, response=VerdictOut)
def get_verdict(request: ApiRequest, dataset: str, version: str) -> Any:
    """May the version be trusted beside the holdouts of its workspace?"""
    return _verdict(_version(dataset, version))


@routes.post("/datasets/{dataset}/versions/{version}/verdict", needs=Permission.APPROVE, kind=Kind.DATASET, response=VerdictOut)
def post_verdict(request: ApiRequest, dataset: str, version: str, body: VerdictIn) -> Any:
    """Overrule what the checks say, with a reason; it holds as long as they say the same."""
    found = _version(dataset, version)
    overrule_verdict(actor=request.actor, version=found, verdict=body.verdict, reason=body.reason)
    return _verdict(found)


@routes.post("/datasets/{dataset}/versions/{version}/reuse", needs=Permission.EDIT_REGISTRY, kind=Kind.DATASET, response=VerdictOut)
def post_reuse(request: ApiRequest, dataset: str, version: str, body: ReuseIn) -> Any:
    """Say whether the version may be used elsewhere."""
    found = _version(dataset, version)
    set_reusable(actor=request.actor, version=found, is_reusable=body.is_reusable, reason=body.reason)
    return _verdict(found)


@routes.post(
    "/datasets/{dataset}/versions/{version}/overlaps", needs=Permission.IMPORT_DATA, kind=Kind.DATASET, response=VerdictOut, status=202
)
def post_check(request: ApiRequest, dataset: str, version: str) -> Any:
    """Compare the version with every holdout anew; it is unchecked until that is done."""
    return Status(202, _verdict(ask_overlap_check(actor=request.actor, version=_version(dataset, version))))


@routes.get("/datasets/{dataset}/versions/{version}/overlaps", needs=Permission.VIEW, kind=Kind.DATASET, response=OverlapList)
def list_overlaps(
    request: ApiRequest, dataset: str, version: str, cursor: Cursor = "", limit: Size = settings.API_PAGE_SIZE
) -> dict[str, Any]:
    """Comparisons of a version with holdouts, or of a holdout with all others, newest first."""
    page = newest_first(checks_of(_version(dataset, version)).order_by(), cursor=cursor, size=limit)
    return {"items": [_overlap(check) for check in page.items], "next": page.next}


@overlaps.get("/overlaps/{overlap}", needs=Permission.VIEW, kind=Kind.DATASET, response=OverlapWhole)
def get_overlap(request: ApiRequest, overlap: str) -> Any:
    """One comparison with where the records stand that show it; their content is in the files."""
    check = find_check(overlap)
    return _overlap(check) | {"pairs": check.pairs}


def _version(dataset: str, version: str) -> DatasetVersion:
    found = Dataset.objects.find(dataset)
    frozen = find_version(found, version)
    frozen.dataset = found
    return frozen


def _verdict(version: DatasetVersion) -> dict[str, Any]:
    known = verdict_of(version)
    return {
        "dataset_id": version.dataset.public_id,
        "version": version.number,
        "verdict": known.state,
        "reason": known.reason,
        "checked": known.checked,
        "checked_reason": known.checked_reason,
        "is_promotable": known.is_promotable,
        "is_overruled": known.ruling is not None,
        "overruled_by": known.ruling.ruled_by.username if known.ruling else None,
        "is_word_waiting": known.waiting is not None,
        "contaminated_reason": known.contaminated,
        "is_reusable": known.is_reusable,
        "reuse_reason": known.reuse.reason if known.reuse else "",
    }


def _overlap(check: OverlapCheck) -> dict[str, Any]:
    copied = ("verdict", "exact", "near", "is_least", "reason", "checked_at")
    return {name: getattr(check, name) for name in copied} | {
        "id": check.public_id,
        "uuid": check.pk,
        "dataset_id": check.version.dataset.public_id,
        "version": check.version.number,
        "holdout_dataset_id": check.holdout.dataset.public_id,
        "holdout_version": check.holdout.number,
    }
