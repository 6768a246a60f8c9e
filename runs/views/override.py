"""What people overrode by hand, and why."""

from django.http import HttpResponse
from django.shortcuts import render

from runs.queries.override import KINDS, overrides
from workspaces.audit import Refusal
from workspaces.pages import PageRequest
from workspaces.queries.change_words import in_line
from workspaces.queries.event import Told, filters_of
from workspaces.queries.paging import BadCursor, Page
from workspaces.verbs import Verb
from workspaces.views.event import row_of

FILTERS = ("actor", "from", "to")
WITH_VALUES = {Verb.LIMIT_SET, Verb.RUN_PRIORITY_SET, Verb.WORKSPACE_PRIORITY_LIMIT_SET}


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
        "rows": [row_of(request, told) | {"became": _became(told, request.workspace.zone)} for told in page.items],
        "next_cursor": page.next or "",
        "kinds": [(name, words) for name, (words, _) in KINDS.items()],
        "kind": kind,
        "asked": {"actor": asked["actor"], "since": asked["from"], "until": asked["to"]},
        "is_filtered": bool(kind) or any(asked.values()),
        "refusal": refusal,
    }
    return render(request, "runs/override_list.html", context, status=422 if refusal else 200)


def _became(told: Told, zone: str) -> str:
    """How much, where the sentence says only what: a run that was cancelled or moved says it all."""
    return ", ".join(in_line(told.event, told.details, zone)) if told.event.verb in WITH_VALUES else ""
