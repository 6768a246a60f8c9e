"""The inbox of requests and the page of one; deciding itself belongs to the floor that knows the subject (URL name `approval-decide`)."""

from django.http import HttpResponseBase
from django.shortcuts import render

from workspaces.commands.approval_comment import comment_on
from workspaces.models import Approval
from workspaces.pages import PageRequest, redirect
from workspaces.queries.approval import asked
from workspaces.queries.inbox import Chip, Filters, entries, kind_chips, whose_chips
from workspaces.queries.paging import BadCursor

STATUSES = {
    "pending": "Wait for a decision",
    "approved": "Approved",
    "refused": "Refused",
    "expired": "Expired",
    "withdrawn": "Withdrawn",
    "void": "Void",
}


def approval_list(request: PageRequest) -> HttpResponseBase:
    filters = Filters.of(*(request.GET.get(name, "")[:40] for name in ("status", "kind", "whose")))
    try:
        page = entries(filters, request.actor, request.rights, cursor=request.GET.get("after", "")[:300])
    except BadCursor:
        page = entries(filters, request.actor, request.rights)
    kinds = kind_chips(filters)
    context = {
        "rows": page.items,
        "next_cursor": page.next or "",
        "filters": filters,
        "kinds": kinds,
        "whose": whose_chips(filters),
        "statuses": [Chip(value, words, filters.status == value) for value, words in STATUSES.items()],
        "total": kinds[0].count,
    }
    return render(request, "workspaces/approval_list.html", context)


def approval(request: PageRequest, approval: str) -> HttpResponseBase:
    found = Approval.objects.find(approval)
    shown = asked(found, request.actor, request.rights)
    return render(request, "workspaces/approval.html", {"asked": shown, "subject_url": shown.page_in(request.workspace.slug)})


def approval_comment(request: PageRequest, approval: str) -> HttpResponseBase:
    """A question or an answer; it decides nothing."""
    found = Approval.objects.find(approval)
    comment_on(actor=request.actor, approval=found, text=request.POST.get("text", "").replace("\r\n", "\n")[:10_000])
    return redirect("approval", request.workspace.slug, found.public_id)
