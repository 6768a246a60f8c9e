"""Deciding on what waits; the list of requests is of the ground floor."""

from typing import Any

from ninja import Schema

from runs.api.schema import DecisionIn
from runs.commands.approval import decide_approval
from workspaces.access import Kind, Permission
from workspaces.api.door import ApiRequest, Routes
from workspaces.models import Approval

routes = Routes("approvals")


class DecidedOut(Schema):
    id: str
    uuid: str
    status: str


@routes.post("/approvals/{approval}/approve", needs=Permission.APPROVE, kind=Kind.APPROVAL, response=DecidedOut)
def approve(request: ApiRequest, approval: str, body: DecisionIn) -> dict[str, Any]:
    """Approve exactly the content whose hash is sent; the launch is admitted anew."""
    return _decide(request, approval, body, approves=True)


@routes.post("/approvals/{approval}/refuse", needs=Permission.APPROVE, kind=Kind.APPROVAL, response=DecidedOut)
def refuse(request: ApiRequest, approval: str, body: DecisionIn) -> dict[str, Any]:
    """Refuse, with a comment that whoever asked will read."""
    return _decide(request, approval, body, approves=False)


def _decide(request: ApiRequest, approval: str, body: DecisionIn, *, approves: bool) -> dict[str, Any]:
    asked = Approval.objects.find(approval)
    decided = decide_approval(actor=request.actor, approval=asked, approves=approves, comment=body.comment, seen_hash=body.content_hash)
    return {"id": decided.public_id, "uuid": str(decided.pk), "status": decided.status}
