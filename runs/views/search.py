"""Search over every workspace that one is a member of; an id goes straight to its thing."""

from typing import Any
from urllib.parse import urlencode

from django.http import Http404, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse

from runs.queries.search import MOST_WORKSPACES, NOUNS, Group, page_of_id, search_all
from workspaces import scope
from workspaces.access import Permission, Rights, rights_of, workspaces_of
from workspaces.models import Workspace
from workspaces.pages import RAIL, PageRequest
from workspaces.queries.search import BEGINS, EXACT, HOLDS, Found, Hit
from workspaces.search_text import LONGEST, Unsearchable, Wanted, read, split

# Pages beside those of the rail.
MORE_PAGES = [("Home", "home", Permission.VIEW), ("Objective", "objective", Permission.VIEW), ("Ledger", "ledger", Permission.VIEW),
              ("Notifications", "notification-list", Permission.VIEW)]  # fmt: skip


def search(request: PageRequest) -> HttpResponse:
    """`q` is looked for; `from` is the workspace that the reader comes from, whose hits stand first; `workspace` is the only one to look in."""
    entered = workspaces_of(request.user)
    text, only = request.GET.get("q", ""), request.GET.get("workspace", "")
    came_from = only or request.GET.get("from", "")
    ordered = sorted(entered, key=lambda workspace: workspace.slug != came_from)
    if only:
        ordered = [workspace for workspace in ordered if workspace.slug == only]
        if not ordered:
            raise Http404
    context = _nothing_yet(text, only, entered, ordered)
    try:
        wanted = read(text)
    except Unsearchable as problem:
        return _answer(request, ordered, came_from, context | {"q": "", "problem": str(problem)}, status=422)
    if wanted.text:
        straight = page_of_id(wanted.text, request.actor, ordered)
        if straight:
            return HttpResponseRedirect(straight)
        groups = search_all(wanted, request.actor, ordered, extra=lambda rights, workspace: _pages(wanted, rights, workspace))
        context |= {"groups": [_shown(group, wanted, only) for group in groups], "total": sum(group.total for group in groups)}
    return _answer(request, ordered, came_from, context)


def _nothing_yet(text: str, only: str, entered: list[Workspace], ordered: list[Workspace]) -> dict[str, Any]:
    return {
        "q": text.strip()[:LONGEST],
        "only": only,
        "entered": entered,
        "looked_in": ordered[:MOST_WORKSPACES],
        "left_out": len(ordered) - MOST_WORKSPACES,
        "nouns": [noun.name for noun in NOUNS],
        "groups": [],
        "total": 0,
        "problem": "",
    }


def _answer(request: PageRequest, ordered: list[Workspace], came_from: str, context: dict[str, Any], status: int = 200) -> HttpResponse:
    """The page, within the frame of the workspace that the reader comes from, where they may enter it."""
    if not ordered or ordered[0].slug != came_from:
        return render(request, "runs/search.html", context | {"came_from": ""}, status=status)
    with scope.open_workspace(ordered[0].pk):
        request.rights = rights_of(request.actor, ordered[0].pk)
        request.workspace = ordered[0]
        return render(request, "runs/search.html", context | {"came_from": came_from}, status=status)


def _pages(wanted: Wanted, rights: Rights, workspace: Workspace) -> Found:
    """A workspace by its name, and its pages by theirs in the rail."""
    text, hits = wanted.text.casefold(), []
    for words, name, needs in (*(entry for _, entries in RAIL for entry in entries), *MORE_PAGES):
        label = words.casefold()
        if text in label and rights.allows(needs):
            rank = EXACT if label == text else BEGINS if label.startswith(text) else HOLDS
            url = reverse(name, args=[workspace.slug])
            hits.append(Hit(words, "", name, workspace.pk, url, rank, workspace.created_at))
    if text in workspace.name.casefold() or text in workspace.slug:
        rank = EXACT if text in (workspace.name.casefold(), workspace.slug) else HOLDS
        url = reverse("home", args=[workspace.slug])
        hits.append(Hit(workspace.name, workspace.slug, workspace.public_id, workspace.pk, url, rank, workspace.created_at))
    return Found(sorted(hits, key=lambda hit: hit.rank), len(hits))


def _shown(group: Group, wanted: Wanted, only: str) -> dict[str, Any]:
    """A group as its card shows it: every text split where it matches, and where the rest of each workspace's hits is listed."""
    rows = [
        {"hit": hit, "workspace": workspace, "name": split(hit.name, wanted.text), "detail": split(hit.detail, wanted.text)}
        for hit, workspace in group.hits
    ]
    more = []
    for place in group.places:
        shown = sum(workspace.pk == place.workspace.pk for _, workspace in group.hits)
        narrowed = "" if only else f"{reverse('search')}?{urlencode({'q': wanted.text, 'workspace': place.workspace.slug})}"
        if shown < place.total:
            more.append({"total": place.total, "shown": shown, "workspace": place.workspace.name, "url": place.url or narrowed})
    return {"name": group.name, "total": group.total, "rows": rows, "more": more}
