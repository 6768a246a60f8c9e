"""`/budgets`: limits with what stands against them, and setting them."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from django.conf import settings
from django.urls import reverse
from django.utils import timezone
from ninja import Schema, Status
from pydantic import Field

from workspaces.access import Kind, Permission
from workspaces.api.door import ApiRequest, Routes
from workspaces.api.registry_shapes import Body, Cursor, Line, Size
from workspaces.commands.limit import LARGEST
from workspaces.commands.limit_raise import change_limit, drop_limit
from workspaces.models import Approval, Limit, NotFound, Unit
from workspaces.queries.budget import LimitRow, limit_changes, limit_rows, reached
from workspaces.queries.paging import Place, in_order

routes = Routes("budgets")

CHANGES = 1_000  # of one limit that are looked back on
UnitName = Literal["gpu_ms", "api_micros", "storage_bytes", "runs", "wall_seconds", "slots"]


class LimitIn(Body):
    unit: UnitName
    window: Literal["run", "week", "month", "now"]
    amount: Annotated[int, Field(strict=True, ge=0, le=LARGEST, description="whole milliseconds, micro-units, bytes or runs")]
    mode: Literal["stop", "approval", "warn"] = "stop"
    thresholds: list[Annotated[int, Field(strict=True, ge=1, le=1000)]] | None = Field(
        None,
        max_length=10,
        description="Percent of it, spent in a week or month, that are told of once; null: as they were, at first 80 and 100.",
    )
    reason: Line = Field("", max_length=1000)


class RemovalIn(Body):
    reason: Line = Field(min_length=1, max_length=1000)


class LimitOut(Schema):
    id: str
    uuid: UUID
    name: str
    unit: str
    window: str
    amount: int
    mode: str
    thresholds: list[int]
    reached: int | None = Field(description="The highest threshold that was reached in the window that runs, in percent.")
    used: int | None
    reserved: int | None
    free: int | None
    starts_at: datetime | None
    ends_at: datetime | None
    waiting: str | None = Field(description="The request that waits for another person's decision on a larger limit.")
    url: str


class LimitList(Schema):
    items: list[LimitOut]
    next: str | None


class ChangeOut(Schema):
    """One change of a limit; `before` and `after` hold the fields that changed, in words. Null where the record's payload was erased."""

    event: str
    actor: str
    reason: str
    before: dict[str, str] | None
    after: dict[str, str] | None
    created_at: datetime


class ChangeList(Schema):
    items: list[ChangeOut]
    next: str | None


@routes.get("/budgets", needs=Permission.VIEW, kind=Kind.BUDGET, response=LimitList)
def list_budgets(request: ApiRequest, cursor: Cursor = "", limit: Size = 50) -> Any:
    """Limits with what is used, reserved and free, what runs spend first. Runs at once are counted by `/runs`: `used` is null there, as for
    limits of one run."""
    return _page(request, cursor=cursor, size=limit)


@routes.post("/budgets", needs=Permission.MANAGE_BUDGET, kind=Kind.BUDGET, response=LimitOut, status=201)
def post_budget(request: ApiRequest, body: LimitIn) -> Any:
    """Set the limit of (unit, window, mode), new or in place of the amount before; a change wants a reason. `now` is for what is there at
    once: stored bytes, and runs, which have the modes `stop` (the next one waits in the queue) and `warn` (it starts, and the decision and
    the budget page say so); `approval` is refused there, since nobody could approve before it starts. Where the workspace's rule wants another
    person for a larger limit, this asks: the answer is the limit as it stands, and `waiting` the request."""
    made = _set_before(request, body) or change_limit(actor=request.actor, **body.dict())
    return Status(201, _one_out(request, Limit.objects.get(pk=made.subject_id) if isinstance(made, Approval) else made))


@routes.get("/budgets/{limit}", needs=Permission.VIEW, kind=Kind.BUDGET, response=LimitOut)
def get_budget(request: ApiRequest, limit: str) -> Any:
    """One limit."""
    return _one_out(request, Limit.objects.find(limit))


@routes.get("/budgets/{budget}/history", needs=Permission.VIEW, kind=Kind.BUDGET, response=ChangeList)
def list_limit_changes(request: ApiRequest, budget: str, cursor: Cursor = "", limit: Size = 50) -> Any:
    """Changes of one limit with who, why, before and after, newest first."""
    changes = limit_changes(Limit.objects.find(budget), size=CHANGES)
    page = in_order(changes, lambda change: (-change.event.sequence,), cursor=cursor, size=limit)
    return {
        "items": [
            {
                "event": change.event.public_id,
                "actor": change.event.actor_label,
                "reason": change.reason,
                "before": None if change.is_erased else {field: before for field, before, _ in change.changes},
                "after": None if change.is_erased else {field: after for field, _, after in change.changes},
                "created_at": change.event.recorded_at,
            }
            for change in page.items
        ],
        "next": page.next,
    }


@routes.post("/budgets/{limit}/remove", needs=Permission.MANAGE_BUDGET, kind=Kind.BUDGET, response=LimitList)
def remove_budget(request: ApiRequest, limit: str, body: RemovalIn) -> Any:
    """Remove a limit, with a reason; the answer is what is left. Where another person decides on that, it is asked for, as `waiting` says."""
    drop_limit(actor=request.actor, limit=Limit.objects.find(limit), reason=body.reason)
    return _page(request, cursor="", size=settings.API_PAGE_SIZE_MAX)


def _set_before(request: ApiRequest, body: LimitIn) -> Limit | None:
    """What an earlier request with the same Idempotency-Key set, should its answer have been lost. (unit, window, mode) name a limit, so it
    needs no id of the key's own: where it stands at the amount asked for, that was done."""
    if request.chosen_id is None:
        return None
    found = Limit.objects.filter(unit=body.unit, window=body.window, mode=body.mode, amount=body.amount).first()
    is_done = found is not None and body.thresholds in (None, found.thresholds)
    return found if is_done else None


def _page(request: ApiRequest, *, cursor: str, size: int) -> dict[str, Any]:
    now = timezone.now()
    page = in_order(limit_rows(now), _place, cursor=cursor, size=size)
    marks = {one.row.limit_id: one.row.percent for one in reached(now)}
    return {"items": [_limit_out(request, row, marks.get(row.limit.pk)) for row in page.items], "next": page.next}


def _place(row: LimitRow) -> Place:
    limit = row.limit
    return (Unit.values.index(limit.unit), Limit.Window.values.index(limit.window), -limit.amount, limit.mode)


def _row(limit: Limit) -> LimitRow:
    row = next((row for row in limit_rows(timezone.now()) if row.limit.pk == limit.pk), None)
    if row is None:
        raise NotFound("limit")
    return row


def _one_out(request: ApiRequest, limit: Limit) -> dict[str, Any]:
    marks = {one.row.limit_id: one.row.percent for one in reached(timezone.now())}
    return _limit_out(request, _row(limit), marks.get(limit.pk))


def _limit_out(request: ApiRequest, row: LimitRow, mark: int | None) -> dict[str, Any]:
    standing = row.standing if row.limit.window != Limit.Window.RUN else None
    return {
        "id": row.limit.public_id,
        "uuid": row.limit.pk,
        "name": row.name,
        "unit": row.limit.unit,
        "window": row.limit.window,
        "amount": row.limit.amount,
        "mode": row.limit.mode,
        "thresholds": row.limit.thresholds if row.passed is not None else [],
        "reached": mark,
        "used": standing.used if standing else None,
        "reserved": standing.reserved if standing else None,
        "free": standing.free if standing else None,
        "starts_at": standing.starts_at if standing else None,
        "ends_at": standing.ends_at if standing else None,
        "waiting": row.waiting.public_id if row.waiting else None,
        "url": reverse("budget", args=[request.workspace.slug]),
    }
