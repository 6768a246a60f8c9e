"""The inbox of requests and the page of one; deciding itself belongs to the floor that knows the subject (URL name `approval-decide`)."""

from django.http import HttpResponseBase
from django.shortcuts import render

from workspaces.asked_words import cost_words
from workspaces.models import Approval
from workspaces.pages import PageRequest
from workspaces.queries.approval import approvals, asked, checks_of, title_of
from workspaces.queries.paging import BadCursor, newest_first

SHOWN = [("pending", "Wait for a decision"), ("approved", "Approved"), ("refused", "Refused"), ("expired", "Expired"), ("void", "Void")]


def approval_list(request: PageRequest) -> HttpResponseBase:
    status = request.GET.get("status", Approval.Status.PENDING)
    status = status if status in Approval.Status.values else str(Approval.Status.PENDING)
    rows = approvals(status=status)
    try:
        page = newest_first(rows, cursor=request.GET.get("after", "")[:300])
    except BadCursor:
        page = newest_first(rows)
    waiting = approvals(status=Approval.Status.PENDING).count()
    items = [
        (
            approval,
            title_of(approval),
            cost_words(approval.content),
            checks_of(approval.content) if approval.subject_type == "promotion" else [],
        )
        for approval in page.items
    ]
    context = {"rows": items, "next_cursor": page.next or "", "status": status, "statuses": SHOWN, "waiting": waiting}
    return render(request, "workspaces/approval_list.html", context)


def approval(request: PageRequest, approval: str) -> HttpResponseBase:
    found = Approval.objects.find(approval)
    return render(request, "workspaces/approval.html", {"asked": asked(found, request.actor, request.rights)})
