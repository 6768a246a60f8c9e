"""Deciding on what waits; the list of requests is of the ground floor."""

from typing import Any

from ninja import Schema

from runs.api.schema import DecisionIn, Name, ReasonIn, Words
from runs.commands.approval import decide_approval, withdraw_approval
from workspaces.access import Actor, Kind, Permission
from workspaces.api.door import ApiRequest, Routes
from workspaces.commands.delegation import in_the_name_of
from workspaces.models import Approval, Delegation

routes = Routes("approvals")


class DecisionForIn(DecisionIn):
    approves: bool
    answer: Words = ""


class AnswerIn(DecisionIn):
    answer: Name


class AloneIn(DecisionIn):
    comment: Name
    answer: Words = ""


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


@routes.post("/approvals/{approval}/answer", needs=Permission.APPROVE, kind=Kind.APPROVAL, response=DecidedOut)
def answer(request: ApiRequest, approval: str, body: AnswerIn) -> dict[str, Any]:
    """Answer a question that a policy asked: one of its choices word for word, or in one's own words where it has none."""
    return _decide(request, approval, body, approves=True, answer=body.answer)


@routes.post("/approvals/{approval}/approve-alone", needs=Permission.APPROVE, kind=Kind.APPROVAL, response=DecidedOut)
def approve_alone(request: ApiRequest, approval: str, body: AloneIn) -> dict[str, Any]:
    """Break the glass: an owner, signed in and not by a token, approves what needs others, with why it cannot wait. All who may approve are told."""
    return _decide(request, approval, body, approves=True, answer=body.answer, is_alone=True)


@routes.post("/approvals/{approval}/decide-for/{delegation}", needs=Permission.VIEW, kind=Kind.APPROVAL, response=DecidedOut)
def decide_for(request: ApiRequest, approval: str, delegation: str, body: DecisionForIn) -> dict[str, Any]:
    """Approve or refuse in the name of whoever gave the delegation. The right comes with it, as it stands at this moment; the token needs
    `approval:write`."""
    named = in_the_name_of(request.actor, Delegation.objects.find(delegation, "giver", "delegate"))
    return _decide(request, approval, body, approves=body.approves, actor=named, answer=body.answer)


@routes.post("/approvals/{approval}/withdraw", needs=Permission.VIEW, kind=Kind.APPROVAL, response=DecidedOut)
def withdraw(request: ApiRequest, approval: str, body: ReasonIn) -> dict[str, Any]:
    """Ask for it no more: whoever asked may, with a reason."""
    found = withdraw_approval(actor=request.actor, approval=Approval.objects.find(approval), reason=body.reason)
    return {"id": found.public_id, "uuid": str(found.pk), "status": found.status}


def _decide(
    request: ApiRequest,
    approval: str,
    body: DecisionIn,
    *,
    approves: bool,
    actor: Actor | None = None,
    answer: str = "",
    is_alone: bool = False,
) -> dict[str, Any]:
    asked = Approval.objects.find(approval)
    decided = decide_approval(
        actor=actor or request.actor,
        approval=asked,
        approves=approves,
        comment=body.comment,
        seen_hash=body.content_hash,
        answer=answer,
        is_alone=is_alone,
    )
    return {"id": decided.public_id, "uuid": str(decided.pk), "status": decided.status}
