"""`/site-rules`: what the installation demands of every policy; for operators, signed in and by no token."""

from datetime import datetime
from typing import Annotated, Any

from ninja import Schema, Status
from pydantic import Field

from runs.api.schema import Name, Strict, Words
from runs.commands.site_rules import decide_rules, propose_rules, stop_policies
from runs.policy.document import BadPolicy
from runs.policy.site import read_rules
from runs.queries.site_rules import forecast
from workspaces.access import SiteRole
from workspaces.api.door import ApiRequest, SiteRoutes
from workspaces.api.registry_shapes import Cursor, Line, Size
from workspaces.audit import Refusal
from workspaces.models import NotFound, SiteRules
from workspaces.queries.paging import in_order

routes = SiteRoutes("site-rules")
OPERATOR = SiteRole.SITE_OPERATOR.value
Document = Annotated[dict[str, Any], Field(max_length=20)]


class RulesIn(Strict):
    document: Document
    reason: Name


class ForecastIn(Strict):
    document: Document


class RulesDecisionIn(Strict):
    content_hash: Annotated[Line, Field(max_length=64)]
    comment: Words = ""


class StopIn(Strict):
    reason: Annotated[Line, Field(min_length=1, max_length=300)]


class TouchedOut(Schema):
    """Of one workspace: acting policies that the rules are about, their decisions of the last four weeks, and how many would have been others."""

    workspace: str
    policies: int
    decisions: int
    different: int


class RulesOut(Schema):
    number: int
    status: str = Field(description="proposed, active (they hold), refused, withdrawn or superseded")
    document: dict[str, Any]
    content_hash: str = Field(description="What a decision is sent with.")
    reason: str
    is_stop: bool = Field(description="They stop every policy, at one operator's word.")
    forecast: list[TouchedOut]
    proposed_by: str
    decided_by: str | None
    decided_at: datetime | None
    created_at: datetime


class RulesList(Schema):
    items: list[RulesOut]
    next: str | None


class ForecastOut(Schema):
    items: list[TouchedOut]


@routes.site("GET", "/site-rules", needs=OPERATOR, response=RulesList)
def list_rules(request: ApiRequest, cursor: Cursor = "", limit: Size = 50) -> Any:
    """Every version, the newest first; the one that is `active` holds, the one that is `proposed` waits for another operator."""
    rows = SiteRules.objects.select_related("proposed_by", "decided_by").order_by("-number")
    page = in_order(list(rows), lambda row: (-row.number,), cursor=cursor, size=limit)
    return {"items": [_out(row) for row in page.items], "next": page.next}


@routes.site("POST", "/site-rules", needs=OPERATOR, response=RulesOut, status=201)
def post_rules(request: ApiRequest, body: RulesIn) -> Any:
    """Propose rules; those that hold do until another operator approves these."""
    return Status(201, _out(propose_rules(actor=request.actor, document=body.document, reason=body.reason)))


@routes.site("POST", "/site-rules/forecast", needs=OPERATOR, response=ForecastOut)
def post_forecast(request: ApiRequest, body: ForecastIn) -> Any:
    """Whom rules would touch, in counts. It writes nothing."""
    try:
        return {"items": forecast(read_rules(body.document))}
    except BadPolicy as fault:
        raise Refusal(*fault.faults, field="document") from fault


@routes.site("POST", "/site-rules/stop", needs=OPERATOR, response=RulesOut)
def post_stop(request: ApiRequest, body: StopIn) -> Any:
    """Stop every policy at once, at one operator's word; that they go on takes two."""
    return _out(stop_policies(actor=request.actor, reason=body.reason))


@routes.site("POST", "/site-rules/{number}/approve", needs=OPERATOR, response=RulesOut)
def approve_rules(request: ApiRequest, number: str, body: RulesDecisionIn) -> Any:
    """Approve exactly the document whose hash is sent; nobody approves their own."""
    return _decide(request, number, body, approves=True)


@routes.site("POST", "/site-rules/{number}/refuse", needs=OPERATOR, response=RulesOut)
def refuse_rules(request: ApiRequest, number: str, body: RulesDecisionIn) -> Any:
    """Refuse, with a comment that whoever proposed them will read."""
    return _decide(request, number, body, approves=False)


def _decide(request: ApiRequest, number: str, body: RulesDecisionIn, *, approves: bool) -> dict[str, Any]:
    if not (number.isascii() and number.isdigit() and len(number) < 9):
        raise NotFound("site rules")
    return _out(decide_rules(actor=request.actor, number=int(number), approves=approves, seen_hash=body.content_hash, comment=body.comment))


def _out(row: SiteRules) -> dict[str, Any]:
    return {
        "number": row.number,
        "status": row.status,
        "document": row.document,
        "content_hash": row.content_hash,
        "reason": row.reason,
        "is_stop": row.is_stop,
        "forecast": row.forecast,
        "proposed_by": row.proposed_by.label,
        "decided_by": row.decided_by.label if row.decided_by else None,
        "decided_at": row.decided_at,
        "created_at": row.created_at,
    }
