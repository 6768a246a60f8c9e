"""`/approval-rules`: who must approve a kind of request; `/delegations`: who decides while somebody is away."""

from datetime import datetime
from typing import Annotated, Any, Literal

from django.conf import settings
from ninja import Schema, Status
from pydantic import AwareDatetime, Field

from workspaces.access import Kind, Permission
from workspaces.api.door import ApiRequest, Routes
from workspaces.api.registry_shapes import Body, Cursor, Line, Size
from workspaces.commands.approval_rule import LONGEST_HOURS, MOST_APPROVERS, set_rule
from workspaces.commands.delegation import delegate, end_delegation
from workspaces.models import Delegation, NotFound
from workspaces.queries.approval_rule import Rule, rule_of, rules
from workspaces.queries.approval_talk import delegations_of
from workspaces.queries.paging import in_order, newest_first

routes = Routes("approvals")


class RuleIn(Body):
    approvers: Annotated[int, Field(strict=True, ge=1, le=MOST_APPROVERS)]
    role: Literal["approver", "admin", "owner"] = "approver"
    hours: Annotated[int, Field(strict=True, ge=1, le=LONGEST_HOURS, description="from the request on; then it expires")]
    reason: Line = Field(min_length=1, max_length=1000)


class DelegationIn(Body):
    username: Line = Field(min_length=1, max_length=150)
    starts_at: AwareDatetime
    ends_at: AwareDatetime
    reason: Line = Field("", max_length=1000)


class RuleOut(Schema):
    kind: str
    approvers: int
    role: str
    hours: int
    is_set: bool = Field(description="False: nobody has set a rule, and this holds without one.")


class RuleList(Schema):
    items: list[RuleOut]
    next: str | None


class DelegationOut(Schema):
    id: str
    giver: str
    delegate: str
    starts_at: datetime
    ends_at: datetime
    ended_at: datetime | None
    reason: str


class DelegationList(Schema):
    items: list[DelegationOut]
    next: str | None


@routes.get("/approval-rules", needs=Permission.VIEW, kind=Kind.APPROVAL, response=RuleList)
def list_rules(request: ApiRequest, cursor: Cursor = "", limit: Size = settings.API_PAGE_SIZE) -> Any:
    """The rule of every kind of request, by the kind's name."""
    page = in_order(rules(), lambda rule: (rule.kind,), cursor=cursor, size=limit)
    return {"items": [_rule_out(rule) for rule in page.items], "next": page.next}


@routes.post("/approval-rules/{kind}", needs=Permission.MANAGE_WORKSPACE, kind=Kind.APPROVAL, response=RuleOut)
def post_rule(request: ApiRequest, kind: str, body: RuleIn) -> Any:
    """Set the rule of a kind. A stricter one binds what waits already, a looser one only what is asked from now on."""
    set_rule(actor=request.actor, kind=kind, **body.dict())
    return _rule_out(rule_of(kind))


@routes.get("/delegations", needs=Permission.VIEW, kind=Kind.APPROVAL, response=DelegationList)
def list_delegations(request: ApiRequest, cursor: Cursor = "", limit: Size = settings.API_PAGE_SIZE) -> Any:
    """Those that one gave and those by which one decides for others, the newest first."""
    rows = delegations_of(request.actor.user) if request.actor.user is not None else Delegation.objects.none()
    page = newest_first(rows, cursor=cursor, size=limit)
    return {"items": [_delegation_out(row) for row in page.items], "next": page.next}


@routes.post("/delegations", needs=Permission.APPROVE, kind=Kind.APPROVAL, response=DelegationOut, status=201)
def post_delegation(request: ApiRequest, body: DelegationIn) -> Any:
    """Let a member decide in one's own name from one instant to another. It wants a signed-in person: a token names nobody."""
    return Status(201, _delegation_out(delegate(actor=request.actor, **body.dict())))


@routes.post("/delegations/{delegation}/end", needs=Permission.VIEW, kind=Kind.APPROVAL, response=DelegationOut)
def post_delegation_end(request: ApiRequest, delegation: str) -> Any:
    """Take it back before its end."""
    found = Delegation.objects.find(delegation, "giver", "delegate")
    if not (request.actor.is_user(found.giver_id) or request.actor.is_user(found.delegate_id)):
        raise NotFound("delegation")
    return _delegation_out(end_delegation(actor=request.actor, delegation=found))


def _rule_out(rule: Rule) -> dict[str, Any]:
    return {"kind": rule.kind, "approvers": rule.approvers, "role": rule.role, "hours": rule.hours, "is_set": rule.is_set}


def _delegation_out(row: Delegation) -> dict[str, Any]:
    return {
        "id": row.public_id,
        "giver": row.giver.label,
        "delegate": row.delegate.label,
        "starts_at": row.starts_at,
        "ends_at": row.ends_at,
        "ended_at": row.ended_at,
        "reason": row.reason,
    }
