"""`/ledger/spend`: API spend that labsite did not see, entered by a person or a service account, and taken back by a line of its own."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from ninja import Schema, Status
from pydantic import Field

from runs.models import Run
from workspaces.access import Kind, Permission
from workspaces.api.door import ApiRequest, Routes
from workspaces.api.registry_shapes import Body, Cursor, Instant, Line, Size, named_by
from workspaces.commands.external_spend import MOST_MICROS, enter_spend, take_spend_back
from workspaces.ids import canonical
from workspaces.models import ExternalSpend
from workspaces.queries.paging import newest_first

routes = Routes("ledger")


class SpendIn(Body):
    amount_micros: Annotated[int, Field(strict=True, ge=1, le=MOST_MICROS, description="millionths of the currency")]
    currency: Line = Field(pattern="^[A-Z]{3}$", description="That in which the pools of the workspace count.")
    what: Line = Field(min_length=1, max_length=300)
    spent_at: Instant
    run: Line = Field("", max_length=200, description="The run that it was spent for; empty for none.")


class TakeBackIn(Body):
    reason: Line = Field(min_length=1, max_length=1000)


class SpendOut(Schema):
    id: str
    uuid: UUID
    amount_micros: int = Field(description="Below 0: takes back what `corrects` entered.")
    currency: str
    what: str
    spent_at: datetime
    created_at: datetime
    entered_by: str
    run_id: str | None
    run_label: str
    corrects: str | None


class SpendList(Schema):
    items: list[SpendOut]
    next: str | None


@routes.get("/ledger/spend", needs=Permission.VIEW, kind=Kind.BUDGET, response=SpendList)
def list_spend(request: ApiRequest, cursor: Cursor = "", limit: Size = 50) -> Any:
    """Lines, newest first."""
    page = newest_first(ExternalSpend.objects.select_related("entered_by", "corrects"), cursor=cursor, size=limit)
    return {"items": [_out(row) for row in page.items], "next": page.next}


@routes.post("/ledger/spend", needs=Permission.LAUNCH_RUN, kind=Kind.BUDGET, response=SpendOut, status=201)
def post_spend(request: ApiRequest, body: SpendIn) -> Any:
    """Enter money that was spent. It counts in the windows of its instant, and no limit refuses it: thresholds that it reaches are told of."""
    known = ExternalSpend.objects.filter(pk=request.chosen_id).first() if request.chosen_id else None
    if known is not None:
        return Status(201, _out(known))
    run = named_by(Run, body.run, "run")
    spend = enter_spend(
        actor=request.actor, amount_micros=body.amount_micros, currency=body.currency, what=body.what, spent_at=body.spent_at,
        run_id=run.pk if run else None, run_label=run.name if run else "", id=request.chosen_id,
    )  # fmt: skip
    return Status(201, _out(spend))


@routes.post("/ledger/spend/{spend}/take-back", needs=Permission.LAUNCH_RUN, kind=Kind.BUDGET, response=SpendOut, status=201)
def take_back(request: ApiRequest, spend: str, body: TakeBackIn) -> Any:
    """Take back what a line entered, once, by a line of the opposite amount. To correct an amount, enter it anew as well."""
    return Status(201, _out(take_spend_back(actor=request.actor, spend=ExternalSpend.objects.find(spend), reason=body.reason)))


def _out(row: ExternalSpend) -> dict[str, Any]:
    return {
        "id": row.public_id,
        "uuid": row.pk,
        "amount_micros": row.amount_micros,
        "currency": row.currency,
        "what": row.what,
        "spent_at": row.spent_at,
        "created_at": row.created_at,
        "entered_by": row.entered_by.label,
        "run_id": canonical("run", None, row.run_id) if row.run_id else None,
        "run_label": row.run_label,
        "corrects": row.corrects.public_id if row.corrects else None,
    }
