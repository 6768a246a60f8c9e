"""Deciding on a request, from the home page or from the request's own page."""

from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme

from runs.commands.approval import decide_approval
from workspaces.audit import Refusal
from workspaces.models import Approval
from workspaces.pages import PageRequest


def approval_decide(request: PageRequest, approval: str) -> HttpResponseBase:
    found = Approval.objects.find(approval)
    decision = request.POST.get("decision", "")
    if decision not in ("approve", "refuse"):
        raise Refusal("Say whether you approve or refuse.")
    comment = request.POST.get("comment", "").replace("\x00", "").strip()[:1000]
    back = _back(request)
    try:
        decide_approval(
            actor=request.actor,
            approval=found,
            approves=decision == "approve",
            comment=comment,
            seen_hash=request.POST.get("seen_hash", "")[:64],
        )
    except Refusal as refusal:
        context = {"approval": found, "refusal": refusal, "comment": comment, "back": back, "decision": decision}
        return render(request, "runs/approval_refused.html", context, status=409)
    response = HttpResponse(status=303)
    response["Location"] = back
    return response


def _back(request: PageRequest) -> str:
    """Where the reader came from, if that is a page of this workspace; else its home."""
    home = reverse("home", args=[request.workspace.slug])
    asked = request.POST.get("back", "")
    is_own = url_has_allowed_host_and_scheme(asked, allowed_hosts=None) and asked.startswith(home) and "\\" not in asked
    return asked if is_own else home
