"""Deciding on a request: from the home page or its own page, in one's own name or in that of somebody who is away; and asking for it no more."""

from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme

from runs.commands.approval import decide_approval, withdraw_approval
from workspaces.access import Actor
from workspaces.audit import Refusal
from workspaces.commands.delegation import in_the_name_of
from workspaces.models import Approval, Delegation
from workspaces.pages import PageRequest, redirect
from workspaces.text import is_storable

ALONE = "alone"  # break-glass: approves what needs others


def approval_decide(request: PageRequest, approval: str) -> HttpResponseBase:
    return _decide(request, Approval.objects.find(approval), request.actor)


def approval_decide_for(request: PageRequest, approval: str, delegation: str) -> HttpResponseBase:
    """In the name of whoever gave the delegation, which stands at this moment or gives nothing."""
    found = Approval.objects.find(approval)
    return _decide(request, found, in_the_name_of(request.actor, Delegation.objects.find(delegation, "giver", "delegate")))


def approval_withdraw(request: PageRequest, approval: str) -> HttpResponseBase:
    found = Approval.objects.find(approval)
    withdraw_approval(actor=request.actor, approval=found, reason=_written(request, "reason"))
    return redirect("approval", request.workspace.slug, found.public_id)


def _decide(request: PageRequest, found: Approval, actor: Actor) -> HttpResponseBase:
    decision = request.POST.get("decision", "")
    if decision not in ("approve", "refuse", ALONE):
        raise Refusal("Say whether you approve or refuse.")
    comment = _written(request, "comment")
    back = _back(request)
    try:
        decide_approval(
            actor=actor,
            approval=found,
            approves=decision != "refuse",
            comment=comment,
            seen_hash=request.POST.get("seen_hash", "")[:64],
            is_alone=decision == ALONE,
            answer=_written(request, "answer") if decision != "refuse" else "",
        )
    except Refusal as refusal:
        context = {"approval": found, "refusal": refusal, "comment": comment, "back": back, "decision": decision}
        return render(request, "runs/approval_refused.html", context, status=409)
    response = HttpResponse(status=303)
    response["Location"] = back
    return response


def _written(request: PageRequest, name: str) -> str:
    text = request.POST.get(name, "").replace("\x00", "").strip()[:1000]
    return text if is_storable(text) else ""


def _back(request: PageRequest) -> str:
    """Where the reader came from, if that is a page of this workspace; else its home."""
    home = reverse("home", args=[request.workspace.slug])
    asked = request.POST.get("back", "")
    is_own = url_has_allowed_host_and_scheme(asked, allowed_hosts=None) and asked.startswith(home) and "\\" not in asked
    return asked if is_own else home
