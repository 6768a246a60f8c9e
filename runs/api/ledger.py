"""`/ledger`: every transfer, and what each run reserved, spent and gave back."""

from datetime import datetime
from typing import Any
from uuid import UUID

from ninja import Schema

from runs.models import Run
from workspaces.access import Kind, Permission
from workspaces.api.budget import UnitName
from workspaces.api.door import ApiRequest, Routes
from workspaces.api.registry_shapes import Cursor, Size, Text, named_by
from workspaces.queries.ledger import entries, entry_row
from workspaces.queries.paging import newest_first

routes = Routes("ledger")


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


@routes.get("/ledger", needs=Permission.VIEW, kind=Kind.BUDGET, response=EntryList)
def list_ledger(request: ApiRequest, unit: UnitName | None = None, run: Text = "", cursor: Cursor = "", limit: Size = 50) -> Any:
    """Transfers, newest first; of one unit, or of one run, where asked."""
    asked = named_by(Run, run, "run")
    page = newest_first(entries(unit=unit or "", run_id=asked.pk if asked else None), cursor=cursor, size=limit)
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
