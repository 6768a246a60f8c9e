"""What people overrode by hand, and why."""

from django.http import HttpResponse
from django.shortcuts import render

from runs.queries.override import KINDS, overrides
from workspaces.audit import Refusal
from workspaces.pages import PageRequest
from workspaces.queries.event import Told, filters_of
from workspaces.queries.paging import BadCursor, Page
from workspaces.views.event import row_of

FILTERS = ("actor", "from", "to")


def override_list(request: PageRequest) -> HttpResponse:
    kind = request.GET.get("kind", "")
    kind = kind if kind in KINDS else ""
    asked = {name: request.GET.get(name, "")[:300] for name in FILTERS}
    refusal: Refusal | None = None
    page: Page[Told] = Page(items=[])
    try:
        filters = filters_of(asked, zone=request.workspace.zone)
        try:
            page = overrides(filters, kind=kind, cursor=request.GET.get("after", ""))
        except BadCursor:
            page = overrides(filters, kind=kind)
    except Refusal as refused:
        refusal = refused
    context = {
        "rows": [row_of(request, told) for told in page.items],
        "next_cursor": page.next or "",
        "kinds": [(name, words) for name, (words, _) in KINDS.items()],
        "kind": kind,
        "asked": {"actor": asked["actor"], "since": asked["from"], "until": asked["to"]},
        "is_filtered": bool(kind) or any(asked.values()),
        "refusal": refusal,
    }
    return render(request, "runs/override_list.html", context, status=422 if refusal else 200)
