"""Pages: a URL, its scope, its permission and its view, declared in one line. There is no other way to a page of a workspace."""

import functools
import uuid
from collections.abc import Callable
from typing import Any, Protocol, cast

from django.contrib.auth.views import redirect_to_login
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, HttpResponseNotAllowed
from django.shortcuts import render
from django.urls import URLPattern, path, reverse
from django_htmx.middleware import HtmxDetails

from workspaces import scope
from workspaces.access import FROZEN, NONE, Actor, Kind, Permission, Rights, rights_of
from workspaces.audit import Denied, Refusal, record_denial
from workspaces.models import NotFound, User, Workspace
from workspaces.queries.notification import Bar, bar_of
from workspaces.queries.paging import BadCursor
from workspaces.queries.workspace import find_workspace
from workspaces.site_audit import record_site_denial


class PageRequest(HttpRequest):
    """A request that has passed a door; what views read."""

    workspace: Workspace
    actor: Actor
    rights: Rights
    htmx: HtmxDetails
    user: User


def is_fragment(request: PageRequest) -> bool:
    """Does a part of a page ask, not a person who pressed something? Such a request only looks: it never carries an act out."""
    return bool(request.htmx) and not request.htmx.boosted


class View(Protocol):
    def __call__(self, request: PageRequest, /, **captured: str) -> HttpResponseBase: ...


def page(
    route: str,
    view: Callable[..., HttpResponseBase],
    *,
    name: str,
    needs: Permission | None,
    kind: Kind | None = None,
    methods: tuple[str, ...] = ("GET",),
    public_reason: str = "",
) -> URLPattern:
    """Declare `/workspaces/<workspace>/<route>`. `needs=None` opens it to people without rights here and wants a written reason."""
    if needs is None and not public_reason:
        raise TypeError(f"The page {name} has neither a permission nor a reason to have none.")

    @functools.wraps(view)
    def guarded(request: HttpRequest, workspace: str, **captured: str) -> HttpResponseBase:
        asked = cast(PageRequest, request)
        if needs is not None and not request.user.is_authenticated:
            return redirect_to_login(request.get_full_path())
        found = find_workspace(workspace)
        if found is None:
            raise Http404
        with scope.open_workspace(found.pk):
            asked.actor = actor_of(request)
            asked.rights = rights_of(asked.actor, found.pk)
            try:
                if needs is not None and not asked.rights.may_enter:
                    raise NotFound("workspace")
                asked.workspace = found
                if needs is not None and not asked.rights.allows(needs, kind):
                    raise Denied(needs, kind or "")
                if request.method not in methods and not (request.method == "HEAD" and "GET" in methods):
                    return HttpResponseNotAllowed(methods)
                return view(asked, **captured)
            except NotFound as missing:
                _record(asked, permission=Permission.VIEW, kind=missing.noun)
                raise Http404 from None
            except BadCursor:
                raise Http404 from None  # a place of another list; views that begin anew instead catch it themselves
            except Denied as denied:
                _record(asked, permission=denied.permission, kind=denied.kind)
                return render(request, "403.html", {"denied": denied}, status=403)
            except Refusal as refusal:
                return render(request, "refused.html", {"refusal": refusal}, status=409)

    setattr(guarded, "door", {"needs": needs, "kind": kind, "public_reason": public_reason, "methods": methods, "scope": "workspace"})
    return path(f"workspaces/<str:workspace>/{route}", guarded, name=name)


def site_page(
    route: str,
    view: Callable[..., HttpResponseBase],
    *,
    name: str,
    needs: str | None,
    methods: tuple[str, ...] = ("GET",),
    public_reason: str = "",
) -> URLPattern:
    """Declare a page of the installation. `needs` is a site role, or "signed_in"; None wants a written reason."""
    if needs is None and not public_reason:
        raise TypeError(f"The page {name} has neither a site role nor a reason to have none.")

    @functools.wraps(view)
    def guarded(request: HttpRequest, **captured: str) -> HttpResponseBase:
        asked = cast(PageRequest, request)
        if needs is not None and not request.user.is_authenticated:
            return redirect_to_login(request.get_full_path())
        asked.actor = actor_of(request)
        asked.rights = NONE
        if needs not in (None, "signed_in") and not asked.actor.has_site_role(cast(str, needs)):
            record_site_denial(actor=asked.actor, role=cast(str, needs), where=request.path)
            raise Http404
        if request.method not in methods and not (request.method == "HEAD" and "GET" in methods):
            return HttpResponseNotAllowed(methods)
        try:
            return view(asked, **captured)
        except NotFound:
            raise Http404 from None
        except Denied as denied:
            record_site_denial(actor=asked.actor, role=denied.permission, where=request.path)
            return render(request, "403.html", {"denied": denied}, status=403)
        except Refusal as refusal:
            return render(request, "refused.html", {"refusal": refusal}, status=409)

    setattr(guarded, "door", {"needs": needs, "kind": None, "public_reason": public_reason, "methods": methods, "scope": "site"})
    return path(route, guarded, name=name)


def actor_of(request: HttpRequest) -> Actor:
    request_id = request.headers.get("X-Request-ID", "")[:64] or uuid.uuid4().hex
    if isinstance(request.user, User):
        return Actor.of(request.user, request_id=request_id)
    return Actor(kind=Actor.system(job_id="").kind, label="visitor", request_id=request_id)


def _record(request: PageRequest, *, permission: str, kind: str) -> None:
    if request.actor.user is not None:
        record_denial(actor=request.actor, permission=permission, kind=kind, where=request.path)


# --- What every template may read ---------------------------------------------------------------------------------------------------------

RAIL: list[tuple[str, list[tuple[str, str, Permission]]]] = [
    (
        "Work",
        [
            ("Runs", "run-list", Permission.VIEW),
            ("Sweeps", "sweep-list", Permission.VIEW),
            ("Failures", "failure-list", Permission.VIEW),
            ("Benchmarks", "benchmark-list", Permission.VIEW),
        ],
    ),
    (
        "Know",
        [
            ("Datasets", "dataset-list", Permission.VIEW),
            ("Artifacts", "artifact-list", Permission.VIEW),
            ("Memory", "memory-list", Permission.VIEW),
        ],
    ),
    (
        "Decide",
        [
            ("Approvals", "approval-list", Permission.VIEW),
            ("Policies", "policy-list", Permission.VIEW),
            ("Promotions", "promotion-list", Permission.VIEW),
            ("Reviews", "review-list", Permission.VIEW),
        ],
    ),
    (
        "Resources",
        [
            ("Agents", "agent-list", Permission.VIEW),
            ("Pools", "pool-list", Permission.VIEW),
            ("Secrets", "secret-list", Permission.VIEW),
            ("Queue", "queue", Permission.VIEW),
            ("Budget", "budget", Permission.VIEW),
        ],
    ),
    (
        "Govern",
        [
            ("Members", "member-list", Permission.VIEW),
            ("Tokens", "token-list", Permission.VIEW),
            ("Audit", "event-list", Permission.VIEW_AUDIT),
            ("Overrides", "override-list", Permission.VIEW_AUDIT),
            ("Exports", "export-list", Permission.EXPORT),
            ("Settings", "workspace-settings", Permission.VIEW),
        ],
    ),
]


class May:
    """`may.launch_run` in a template: does the reader hold the right here, and is it of use? Templates ask; commands decide."""

    def __init__(self, rights: Rights, *, is_archived: bool = False) -> None:
        self.rights, self.is_archived = rights, is_archived

    def __getitem__(self, name: str) -> bool:
        permission, _, kind = name.partition("_for_")
        if self.is_archived and permission in FROZEN:
            return False
        return self.rights.allows(Permission(permission), Kind(kind) if kind else None)


def context(request: HttpRequest) -> dict[str, Any]:
    """Context processor: workspace, actor, rights, rail, switcher and what is unseen."""
    actor: Actor | None = getattr(request, "actor", None)
    rights: Rights = getattr(request, "rights", NONE)
    workspace: Workspace | None = getattr(request, "workspace", None) if rights.may_enter and scope.is_open() else None

    # Asked for when the bar and the rail are drawn: a part of a page, which is asked for every few seconds, has neither.
    @functools.cache
    def bar() -> Bar:
        return bar_of(actor, rights, is_in_workspace=workspace is not None) if actor else Bar([])

    def rail() -> list[dict[str, Any]]:
        return _rail(request, workspace, rights, bar().waiting_words) if workspace else []

    return {
        "workspace": workspace,
        "actor": actor,
        "may": May(rights, is_archived=workspace is not None and workspace.status == Workspace.Status.ARCHIVED),
        "rail": functools.cache(rail),
        "unseen": lambda: bar().unseen_words,
        "my_workspaces": lambda: [{"name": name, "slug": slug, "url": reverse("home", args=[slug])} for name, slug in bar().workspaces],
    }


@functools.lru_cache(maxsize=1000)
def _address(name: str, slug: str) -> str:
    return reverse(name, args=[slug])


def _rail(request: HttpRequest, workspace: Workspace, rights: Rights, waiting: str) -> list[dict[str, Any]]:
    here = request.resolver_match.url_name if request.resolver_match else ""
    noun = (here or "").split("-")[0]
    groups = []
    for label, entries in RAIL:
        items = []
        for words, name, needs in entries:
            if not rights.allows(needs):
                continue
            items.append(
                {
                    "label": words,
                    "url": _address(name, workspace.slug),
                    "current": noun == name.split("-")[0],
                    "count": waiting if name == "approval-list" else "",
                }
            )
        if items:
            groups.append({"label": label, "items": items})
    return groups


def redirect(name: str, *args: Any, query: str = "", status: int = 303) -> HttpResponse:
    """Answer a POST with the address of the page that shows what came of it (303 See Other, RFC 9110)."""
    response = HttpResponse(status=status)
    response["Location"] = reverse(name, args=args) + (f"?{query}" if query else "")
    return response
