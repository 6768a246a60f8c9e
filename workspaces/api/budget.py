"""`/budgets`: limits with what stands against them, and setting them. `/ledger`: every transfer."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from django.urls import reverse
from django.utils import timezone
from ninja import Query, Schema, Status
from pydantic import Field

from workspaces.access import Kind, Permission
from workspaces.api.door import ApiRequest, Routes
from workspaces.api.registry_shapes import Body, Cursor, Line, Size
from workspaces.commands.limit import LARGEST, remove_limit, set_limit
from workspaces.models import Limit, NotFound
from workspaces.queries.budget import LimitRow, limit_rows
from workspaces.queries.ledger import entries, entry_row
from workspaces.queries.paging import newest_first

routes = Routes("budgets")
ledger_routes = Routes("ledger")

UnitName = Literal["gpu_ms", "api_micros", "storage_bytes", "runs"]


class LimitIn(Body):
    unit: UnitName
    window: Literal["run", "week", "month", "now"]
    amount: Annotated[int, Field(strict=True, ge=0, le=LARGEST, description="whole milliseconds, micro-units, bytes or runs")]
    mode: Literal["stop", "approval", "warn"] = "stop"
    reason: Line = Field("", max_length=1000)


class ReasonIn(Body):
    reason: Line = Field(min_length=1, max_length=1000)


class LimitOut(Schema):
    id: str
    uuid: UUID
    name: str
    unit: str
    window: str
    amount: int
    mode: str
    used: int | None
    reserved: int | None
    free: int | None
    starts_at: datetime | None
    ends_at: datetime | None
    url: str


class LimitList(Schema):
    items: list[LimitOut]
    next: str | None = None


class EntryOut(Schema):
    id: str
    uuid: UUID
    created_at: datetime
    act: str
    unit: str
    window: str
    window_starts_at: datetime
    debit: str
    credit: str
    amount: int
    run_id: str | None
    run_label: str
    reason: str


class EntryList(Schema):
    items: list[EntryOut]
    next: str | None


@routes.get("/budgets", needs=Permission.VIEW, kind=Kind.BUDGET, response=LimitList)
def list_budgets(request: ApiRequest) -> Any:
    """Every limit with what is used, reserved and free. Runs at once are counted by `/runs`: `used` is null there, as for limits of one run."""
    return {"items": [_limit_out(request, row) for row in limit_rows(timezone.now())], "next": None}


@routes.post("/budgets", needs=Permission.MANAGE_BUDGET, kind=Kind.BUDGET, response=LimitOut, status=201)
def post_budget(request: ApiRequest, body: LimitIn) -> Any:
    """Set the limit of (unit, window, mode), new or in place of the amount before; a change wants a reason."""
    limit = set_limit(actor=request.actor, **body.dict())
    return Status(201, _limit_out(request, _row(limit)))


@routes.get("/budgets/{limit}", needs=Permission.VIEW, kind=Kind.BUDGET, response=LimitOut)
def get_budget(request: ApiRequest, limit: str) -> Any:
    """One limit."""
    return _limit_out(request, _row(Limit.objects.find(limit)))


@routes.post("/budgets/{limit}/remove", needs=Permission.MANAGE_BUDGET, kind=Kind.BUDGET, response=LimitList)
def remove_budget(request: ApiRequest, limit: str, body: ReasonIn) -> Any:
    """Remove a limit, with a reason; the answer is what is left."""
    found = Limit.objects.find(limit)
    remove_limit(actor=request.actor, unit=found.unit, window=found.window, mode=found.mode, reason=body.reason)
    return {"items": [_limit_out(request, row) for row in limit_rows(timezone.now())], "next": None}


@ledger_routes.get("/ledger", needs=Permission.VIEW, kind=Kind.BUDGET, response=EntryList)
def list_ledger(
    request: ApiRequest, unit: UnitName | None = None, run: Annotated[UUID | None, Query()] = None, cursor: Cursor = "", limit: Size = 50
) -> Any:
    """Transfers, newest first; `run` is the UUID of a run."""
    page = newest_first(entries(unit=unit or "", run_id=run), cursor=cursor, size=limit)
    rows = [entry_row(entry) for entry in page.items]
    return {
        "items": [
            {
                "id": row.entry.public_id,
                "uuid": row.entry.pk,
                "created_at": row.entry.created_at,
                "act": row.entry.act,
                "unit": row.unit,
                "window": row.window,
                "window_starts_at": row.starts_at,
                "debit": row.debit,
                "credit": row.credit,
                "amount": row.entry.amount,
                "run_id": row.run_ref or None,
                "run_label": row.entry.run_label,
                "reason": row.entry.reason,
            }
            for row in rows
        ],
        "next": page.next,
    }


def _row(limit: Limit) -> LimitRow:
    row = next((row for row in limit_rows(timezone.now()) if row.limit.pk == limit.pk), None)
    if row is None:
        raise NotFound("limit")
    return row


def _limit_out(request: ApiRequest, row: LimitRow) -> dict[str, Any]:
    standing = row.standing if row.limit.window != Limit.Window.RUN else None
    return {
        "id": row.limit.public_id,
        "uuid": row.limit.pk,
        "name": row.name,
        "unit": row.limit.unit,
        "window": row.limit.window,
        "amount": row.limit.amount,
        "mode": row.limit.mode,
        "used": standing.used if standing else None,
        "reserved": standing.reserved if standing else None,
        "free": standing.free if standing else None,
        "starts_at": standing.starts_at if standing else None,
        "ends_at": standing.ends_at if standing else None,
        "url": reverse("budget", args=[request.workspace.slug]),
    }
