"""`/reviews`: which runs deserve a person, with the reasons for each; the same as the page says."""

from datetime import datetime
from typing import Annotated, Any, Literal

from django.conf import settings
from django.utils import timezone
from ninja import Schema
from pydantic import Field, StringConstraints

from runs.api.schema import Strict, Words
from runs.commands.review import review_run, take_back_review
from runs.models import Review, Run
from runs.queries.review import LOOKED_AT, LOOKED_BACK, deserving, findings_of, may_read
from runs.review import Reason
from workspaces.access import Kind, Permission
from workspaces.api.door import ApiRequest, Routes
from workspaces.api.registry_shapes import Cursor, Line, Size

routes = Routes("reviews")
Word = Literal["contaminated", "undeclared", "surprising", "failing", "cost", "first"]


class FindingOut(Schema):
    reason: Word
    key: str = Field(description="What was found; the same thing found again has the same key.")
    words: str
    weight: int


class DeservingOut(Schema):
    run_id: str
    ended_at: datetime
    weight: int
    findings: list[FindingOut]


class DeservingList(Schema):
    """A page of the list; `total` says how many there are, `is_cut` that more runs ended in that time than were looked at."""

    items: list[DeservingOut]
    next: str | None
    total: int
    runs_looked_at: int
    most_looked_at: int
    days: int
    is_cut: bool


class ReviewIn(Strict):
    comment: Words = ""
    keys: Annotated[list[Annotated[Line, StringConstraints(max_length=20_000)]], Field(max_length=50)] = Field(
        [], description="Keys of the findings that were seen; empty: all that are found now."
    )


class ReviewOut(Schema):
    id: str
    run_id: str
    keys: list[str]
    comment: str
    reviewed_by: str
    reviewed_at: datetime
    taken_back_at: datetime | None


@routes.get("/reviews", needs=Permission.VIEW, kind=Kind.RUN, response=DeservingList)
def list_deserving(
    request: ApiRequest, cursor: Cursor = "", limit: Size = settings.API_PAGE_SIZE, reason: Word | Literal[""] = ""
) -> dict[str, Any]:
    """Runs that deserve a person, the weightiest first, as far as the reader may see why."""
    asked = Reason(reason) if reason else None
    found = deserving(timezone.now(), may_see=lambda kind: _may_see(request, kind), reason=asked, cursor=cursor, size=limit)
    items = [
        {
            "run_id": row.run.public_id,
            "ended_at": row.run.ended_at,
            "weight": row.weight,
            "findings": [{"reason": one.reason, "key": one.key, "words": one.words, "weight": one.weight} for one in row.findings],
        }
        for row in found.items
    ]
    bounds = {"runs_looked_at": found.runs, "most_looked_at": LOOKED_AT, "days": LOOKED_BACK.days, "is_cut": found.is_cut}
    return {"items": items, "next": found.next, "total": found.total} | bounds


@routes.post("/runs/{run}/review", needs=Permission.LAUNCH_RUN, kind=Kind.RUN, response=ReviewOut)
def review(request: ApiRequest, run: str, body: ReviewIn) -> dict[str, Any]:
    """Say that somebody has seen the run, and what came of it; it comes back once something else is found of it."""
    found = Run.objects.find(run)
    findings = findings_of(found, timezone.now(), may_see=lambda kind: _may_see(request, kind))
    seen = [one for one in findings if not body.keys or one.key in body.keys]
    return _review(request, review_run(actor=request.actor, run=found, findings=seen, comment=body.comment))


@routes.post("/reviews/{review}/take-back", needs=Permission.LAUNCH_RUN, kind=Kind.RUN, response=ReviewOut)
def take_back(request: ApiRequest, review: str) -> dict[str, Any]:
    """Put the run back on the list."""
    return _review(request, take_back_review(actor=request.actor, review=Review.objects.find(review)))


def _may_see(request: ApiRequest, kind: Kind) -> bool:
    return request.rights.allows(Permission.VIEW, kind)


def _review(request: ApiRequest, review: Review) -> dict[str, Any]:
    shown = [key for key in review.findings if may_read(key, lambda kind: _may_see(request, kind))]
    return {
        "id": review.public_id,
        "run_id": review.run.public_id,
        "keys": shown,
        "comment": review.comment,
        "reviewed_by": review.reviewed_by.username,
        "reviewed_at": review.created_at,
        "taken_back_at": review.taken_back_at,
    }
