"""What one was told: the list, and marking it as seen. Looking marks nothing: GET never writes."""

from typing import Any
from urllib.parse import urlencode

from django.http import HttpResponse
from django.shortcuts import render

from workspaces.commands.notification import see
from workspaces.pages import PageRequest, redirect
from workspaces.queries.notification import find_told, shown, told_to, up_to
from workspaces.queries.paging import BadCursor, newest_first


def notification_list(request: PageRequest) -> HttpResponse:
    rows, only = told_to(request.actor, request.rights), _only(request.GET)
    if only:
        rows = rows.filter(seen_at=None)
    cursor = request.GET.get("after", "")[:300]
    try:
        page = newest_first(rows, cursor=cursor)
    except BadCursor:
        page, cursor = newest_first(rows), ""
    context = {
        "told": shown(page.items, request.workspace.slug),
        "next_cursor": page.next or "",
        "only": only,
        "after": cursor,
        "may_see_all": not cursor and any(row.seen_at is None for row in page.items),
    }
    return render(request, "workspaces/notification_list.html", context)


def notification_seen(request: PageRequest, notification: str) -> HttpResponse:
    see(find_told(request.actor, request.rights, notification))
    return _back(request)


def notification_seen_all(request: PageRequest) -> HttpResponse:
    """Everything up to the newest that stood on the page."""
    newest = find_told(request.actor, request.rights, request.POST.get("newest", "")[:64]).get()
    see(up_to(told_to(request.actor, request.rights), newest))
    return _back(request)


def _back(request: PageRequest) -> HttpResponse:
    """To the same place of the list."""
    answer = redirect("notification-list", request.workspace.slug)
    place = {"only": _only(request.POST), "after": request.POST.get("after", "")[:300]}
    query = urlencode({name: value for name, value in place.items() if value})
    if query:
        answer["Location"] = f"{answer['Location']}?{query}"
    return answer


def _only(asked: Any) -> str:
    return "unseen" if asked.get("only") == "unseen" else ""
