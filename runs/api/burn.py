"""`/ledger/burn` and `/ledger/recounts`: what spent the budget, and the counts from zero that prove it."""

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from django.utils import timezone
from ninja import Schema, Status

from runs.api.schema import ReasonIn
from runs.queries.burn import burn
from workspaces.access import Kind, Permission
from workspaces.accounts import window_at
from workspaces.api.door import ApiRequest, Routes
from workspaces.api.registry_shapes import Cursor, Instant, Size
from workspaces.audit import Denied
from workspaces.canonical import digest
from workspaces.commands.recount import correct_ledger, recount_ledger
from workspaces.models import Limit, Recount
from workspaces.queries.paging import in_order, newest_first

routes = Routes("ledger")

KINDS = {"benchmark": Kind.BENCHMARK, "agent": Kind.AGENT, "policy": Kind.POLICY, "run": Kind.BUDGET, "person": Kind.RUN}


class PartOut(Schema):
    """Amounts in the unit's integers; `id` is the slug, canonical id or user name, empty for what belongs to no run."""

    name: str
    id: str
    runs: int
    reserved: int
    spent: int


class BurnOut(Schema):
    """`total` is the sum over all parts, on whichever page, and equals the ledger's entries."""

    unit: str
    by: str
    total: int
    items: list[PartOut]
    next: str | None


class DifferenceOut(Schema):
    what: str
    unit: str
    starts_at: datetime | None
    balance: int
    counted: int


class RecountOut(Schema):
    id: str
    uuid: UUID
    status: str
    accounts: int
    entries: int
    wrong: list[DifferenceOut]
    asked_by: str | None
    created_at: datetime


class RecountList(Schema):
    items: list[RecountOut]
    next: str | None


@routes.get("/ledger/burn", needs=Permission.VIEW, kind=Kind.BUDGET, response=BurnOut)
def get_burn(
    request: ApiRequest,
    unit: Literal["gpu_ms", "api_micros"] = "gpu_ms",
    by: Literal["benchmark", "agent", "policy", "run", "person"] = "benchmark",
    since: Instant | None = None,
    until: Instant | None = None,
    cursor: Cursor = "",
    limit: Size = 50,
) -> Any:
    """What was spent, the largest part first: entered within [since, until), or without either in the week that runs."""
    if not request.rights.allows(Permission.VIEW, KINDS[by]):
        raise Denied(Permission.VIEW, KINDS[by])
    week = None if since or until else window_at(request.workspace, Limit.Window.WEEK, timezone.now()).starts_at
    found = burn(unit, by=by, week=week, since=since, until=until)
    page = in_order(found.parts, lambda part: (-part.spent, part.ref, digest(part.label)), cursor=cursor, size=limit)
    return {
        "unit": unit,
        "by": by,
        "total": found.total,
        "items": [
            {"name": part.label, "id": part.ref, "runs": part.runs, "reserved": part.estimate, "spent": part.spent} for part in page.items
        ],
        "next": page.next,
    }


@routes.get("/ledger/recounts", needs=Permission.VIEW, kind=Kind.BUDGET, response=RecountList)
def list_recounts(request: ApiRequest, cursor: Cursor = "", limit: Size = 50) -> Any:
    """Counts from zero, newest first, with what differed."""
    page = newest_first(Recount.objects.select_related("asked_by"), cursor=cursor, size=limit)
    return {"items": [_recount_out(row) for row in page.items], "next": page.next}


@routes.post("/ledger/recount", needs=Permission.MANAGE_BUDGET, kind=Kind.BUDGET, response=RecountOut, status=201)
def post_recount(request: ApiRequest) -> Any:
    """Count every account anew from its entries and keep the result. No balance changes."""
    return Status(201, _recount_out(recount_ledger(actor=request.actor)))


@routes.post("/ledger/correct", needs=Permission.MANAGE_BUDGET, kind=Kind.BUDGET, response=RecountOut, status=201)
def post_correct(request: ApiRequest, body: ReasonIn) -> Any:
    """Set each balance that is not the sum of its entries to that sum, and count anew. Entries are never changed."""
    return Status(201, _recount_out(correct_ledger(actor=request.actor, reason=body.reason)))


def _recount_out(row: Recount) -> dict[str, Any]:
    return {
        "id": row.public_id,
        "uuid": row.pk,
        "status": "right" if row.is_right else "wrong",
        "accounts": row.accounts,
        "entries": row.entries,
        "wrong": row.wrong,
        "asked_by": row.asked_by.label if row.asked_by else None,
        "created_at": row.created_at,
    }
