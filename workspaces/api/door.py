"""The only way to an API route: scope, permission and kind are declared with it (contracts.md I, facts D6, D7).

Order for each request: who asks (401) -> which workspace, may they enter (404, as for a missing one) -> is there such a method (405) -> may
they do this (403) -> is the body too large (413), the query known, the input well-formed (422) -> the view, which makes one command or one
query -> answer, or problem+json (RFC 9457).
"""

import uuid
from collections.abc import Callable
from typing import Any, TypeVar, cast

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from ninja import Router
from ninja.operation import Operation, PathView
from ninja.utils import check_csrf

from workspaces import ids, kept_query, scope
from workspaces.access import NONE, Actor, Kind, Permission, Rights, rights_of
from workspaces.api import idempotency
from workspaces.api.problem import missing, not_allowed, problem
from workspaces.audit import Denied, Refusal, TooMany, record_denial
from workspaces.commands.token import note_use
from workspaces.downloads import StoredStream
from workspaces.models import NotFound, User, Workspace
from workspaces.queries import token
from workspaces.queries.paging import BadCursor
from workspaces.queries.workspace import find_workspace
from workspaces.site_audit import record_site_denial

F = TypeVar("F", bound=Callable[..., Any])
NO_MORE = {"by_run": False, "streams": False, "telemetry": False}  # what a route is not, unless it says so


class ApiRequest(HttpRequest):
    """A request that has passed the door; what API views read."""

    workspace: Workspace
    actor: Actor
    rights: Rights
    answer_is_secret: bool  # set by a view whose answer holds what is shown once: idempotency keeps it nowhere
    chosen_id: uuid.UUID | None  # key of the row that an idempotent POST makes; the same key gives the same id for ever


class Unauthenticated(Exception):  # an answer, not a fault of ours
    def __init__(self, words: str = "Sign in, or send `Authorization: Bearer <token>`.") -> None:
        super().__init__(words)


class Routes:
    """Routes of one noun below `/api/v1/workspaces/{workspace}`."""

    def __init__(self, tag: str) -> None:
        self.router = Router(tags=[tag])

    def get(self, path: str, *, needs: Permission, kind: Kind, response: Any = None) -> Callable[[F], F]:
        return self._route("GET", path, needs=needs, kind=kind, response={200: response} if response else None)

    def post(
        self,
        path: str,
        *,
        needs: Permission,
        kind: Kind,
        response: Any = None,
        status: int = 200,
        by_run: bool = False,
        streams: bool = False,
        telemetry: bool = False,
    ) -> Callable[[F], F]:
        """`by_run`: a run token may call it too, for its own run; the path names it `{run}`. `streams`: the view reads the body in pieces.
        `telemetry`: what it writes is no command and has no id of its own, so it is kept in one transaction with its Idempotency-Key."""
        shapes = {status: response} if response else None
        more = {"by_run": by_run, "streams": streams, "telemetry": telemetry}
        return self._route("POST", path, needs=needs, kind=kind, response=shapes, **more)

    def put(self, path: str, *, needs: Permission, kind: Kind, response: Any = None, status: int = 200) -> Callable[[F], F]:
        return self._route("PUT", path, needs=needs, kind=kind, response={status: response} if response else None)

    def patch(
        self, path: str, *, needs: Permission, kind: Kind, response: Any = None, streams: bool = False, by_run: bool = False
    ) -> Callable[[F], F]:
        shapes = {200: response} if response else None
        return self._route("PATCH", path, needs=needs, kind=kind, response=shapes, streams=streams, by_run=by_run)

    def head(self, path: str, *, needs: Permission, kind: Kind, by_run: bool = False) -> Callable[[F], F]:
        return self._route("HEAD", path, needs=needs, kind=kind, response=None, by_run=by_run)

    def delete(self, path: str, *, needs: Permission, kind: Kind, response: Any = None, by_run: bool = False) -> Callable[[F], F]:
        return self._route("DELETE", path, needs=needs, kind=kind, response={200: response} if response else None, by_run=by_run)

    def _route(self, method: str, path: str, *, needs: Any, kind: Kind | None, response: Any, **more: bool) -> Callable[[F], F]:
        door = {"needs": needs, "kind": kind, "scope": self.scope, "methods": (method,), **NO_MORE, **more}

        def declare(view: F) -> F:
            setattr(view, "door", door)
            extra: dict[str, Any] = {"security": [{"bearer": []}, {"session": []}]}
            self.router.add_api_operation(path, [method], view, response=response or {200: None}, by_alias=True, openapi_extra=extra)
            return view

        return declare

    scope = "workspace"


class SiteRoutes(Routes):
    """Routes of the installation, listed whole in contracts.md I. `needs` is "signed_in" or a site role."""

    scope = "site"

    def site(self, method: str, path: str, *, needs: str, response: Any, status: int = 200) -> Callable[[F], F]:
        """`response` is a shape, answered with `status`, or shapes by status."""
        return self._route(method, path, needs=needs, kind=None, response=response if isinstance(response, dict) else {status: response})


def through_door(path_view: PathView) -> Callable[..., HttpResponseBase]:
    """The view of a URL: finds the operation of the method and lets the request through, or says why not."""

    def guarded(request: HttpRequest, **captured: str) -> HttpResponseBase:
        asked = cast(ApiRequest, request)
        asked.chosen_id = None
        operation = next((one for one in path_view.operations if request.method in one.methods), None)
        try:
            asked.actor = _who(request)
        except Unauthenticated as error:
            answer = problem(401, str(error))
            answer["WWW-Authenticate"] = 'Bearer realm="labsite"'
            return answer
        workspace = captured.pop("workspace", None)
        answered = _at_site(asked, operation, captured) if workspace is None else _in_workspace(asked, workspace, operation, captured)
        if answered is None:
            return not_allowed(request.method, sorted(method for one in path_view.operations for method in one.methods))
        return answered

    setattr(guarded, "csrf_exempt", True)  # the door checks it for cookie sessions; bearer tokens need none
    setattr(guarded, "path_view", path_view)
    return guarded


def _at_site(request: ApiRequest, operation: Operation | None, captured: dict[str, str]) -> HttpResponseBase | None:
    """The answer; None where the address does not take the method."""
    request.rights = NONE
    if request.actor.run_id is not None:
        return problem(403, "A run's token writes to its own run and reads nothing of the installation.")
    if operation is None:
        return None
    needs = _door(operation)["needs"]
    if needs != "signed_in" and not request.actor.has_site_role(needs):
        record_site_denial(actor=request.actor, role=needs, where=request.path)
        return problem(403, f"This needs the site role “{needs.replace('_', ' ')}”.")
    return _carry_out(request, operation, captured)


def _in_workspace(request: ApiRequest, workspace: str, operation: Operation | None, captured: dict[str, str]) -> HttpResponseBase | None:
    """The answer; None where the address does not take the method."""
    found = find_workspace(workspace)
    if found is None:
        return missing("workspace")
    with scope.open_workspace(found.pk):
        request.rights = rights_of(request.actor, found.pk)
        own_run = request.actor.run_id is not None and request.actor.token_workspace_id == found.pk
        if not request.rights.may_enter and not own_run:
            return failed(request, NotFound("workspace"))
        request.workspace = found
        if own_run:
            named = ids.as_uuid(captured.get("run", "").removeprefix("run_"))
            if operation is None or not _door(operation)["by_run"] or named != request.actor.run_id:
                return failed(request, Denied("write beyond its own run"))
        elif operation is None:
            return None
        elif not request.rights.allows(_door(operation)["needs"], _door(operation)["kind"]):
            return failed(request, Denied(_door(operation)["needs"], _door(operation)["kind"]))
        response = _carry_out(request, operation, captured)
        if isinstance(response, StreamingHttpResponse) and not isinstance(response, StoredStream):
            response.streaming_content = _in_scope(found.pk, response.streaming_content)
        return response


def _door(operation: Operation) -> dict[str, Any]:
    declared: dict[str, Any] = getattr(operation.view_func, "door")
    return declared


def _carry_out(request: ApiRequest, operation: Operation, captured: dict[str, str]) -> HttpResponseBase:
    """Let the view answer, once for each Idempotency-Key; a body that is larger than the API takes is refused unread, and so is a query
    with keys that mean nothing."""
    streams, telemetry = _door(operation)["streams"], _door(operation)["telemetry"]
    if not streams and _body_bytes(request) > settings.API_BODY_BYTES:
        return problem(413, f"A request body may have {settings.API_BODY_BYTES:,} bytes; files go to the routes that take uploads.")
    faults = _query_faults(request, query_keys(operation), query_lists(operation))
    if faults:
        return problem(422, "The request cannot be read as it stands.", errors=faults)
    # A run's token only: whoever else calls such a route is denied, and the denial is a transaction of its own.
    as_one = telemetry and request.actor.run_id is not None
    return idempotency.once(request, lambda: operation.run(request, **captured), actor=request.actor, streams=streams, as_one=as_one)


def query_keys(operation: Operation) -> list[str]:
    """Keys of the query string that an operation takes, in the order in which it declares them."""
    return [key for model in operation.models if model.__ninja_param_source__ == "query" for key in model.__ninja_flatten_map__]


def query_lists(operation: Operation) -> set[str]:
    """Those of them that may be given several times."""
    return {key for model in operation.models if model.__ninja_param_source__ == "query" for key in model.__ninja_collection_fields__}


def _query_faults(request: HttpRequest, known: list[str], lists: set[str]) -> list[dict[str, Any]]:
    """What the query string says that no one would hear: keys unknown here, and keys given twice that are no list."""
    takes = f"this address takes {', '.join(known)}" if known else "this address takes no query"
    faults = [{"field": key[:100], "message": f"Unknown; {takes}."} for key in request.GET if key not in known]
    return faults + [
        {"field": key, "message": "Given more than once."} for key in known if key not in lists and len(request.GET.getlist(key)) > 1
    ]


def _body_bytes(request: HttpRequest) -> int:
    """Announced size of the body; without an announcement Django reads none."""
    announced = request.headers.get("Content-Length") or "0"
    return int(announced) if announced.isascii() and announced.isdigit() else 0


def _in_scope(workspace_id: uuid.UUID, stream: Any) -> Any:
    """A stream is read after the view has returned: open the scope again while each piece is made."""
    pieces = iter(stream)
    while True:
        with scope.open_workspace(workspace_id):
            piece = next(pieces, None)
        if piece is None:
            return
        yield piece


def _who(request: HttpRequest) -> Actor:
    """The actor behind a bearer token, or behind the session's cookie with its CSRF token."""
    request_id = request.headers.get("X-Request-ID", "")[:64] or uuid.uuid4().hex
    header = request.headers.get("Authorization", "")
    if header:
        scheme, _, text = header.partition(" ")
        parts = token.read(text.strip()) if scheme.lower() == "bearer" else None
        actor = None
        if parts is not None and kept_query.rows(Workspace, pk=parts.workspace_id):
            with scope.open_workspace(parts.workspace_id):
                actor = token.actor_of_token(parts, request_id=request_id)
                if actor is not None:
                    note_use(parts.token_id, address=str(request.META.get("REMOTE_ADDR", "")))
        if actor is None:
            raise Unauthenticated("This token is unknown, has expired or was revoked; send `Authorization: Bearer <token>`.")
        return actor
    if not isinstance(request.user, User) or not request.user.is_active:
        raise Unauthenticated
    if request.method not in ("GET", "HEAD", "OPTIONS") and check_csrf(request, through_door):
        raise Unauthenticated("A write with a browser's session sends the header X-CSRFToken; one with a token needs none.")
    return Actor.of(request.user, request_id=request_id)


# --- Answers ------------------------------------------------------------------------------------------------------------------------------


def failed(request: HttpRequest, error: Exception | type[Exception]) -> HttpResponse:
    """Turn what a command or query raised into its answer; the attempt of one who may not is recorded."""
    asked = cast(ApiRequest, request)
    match error:
        case NotFound():
            _record(asked, permission=Permission.VIEW, kind=error.noun)
            return missing(error.noun)
        case Denied():
            _record(asked, permission=error.permission, kind=error.kind)
            return problem(403, _scope_missing(asked, error) or str(error))
        case TooMany():
            answer = problem(429, str(error), errors=[{"field": None, "message": str(error)}])
            answer["Retry-After"] = str(error.retry_seconds)
            return answer
        case Refusal():
            errors = [{"field": error.field or None, "message": reason} for reason in error.reasons]
            more = {"certificate": error.certificate} if error.certificate else {}
            return problem(409 if not error.field else 422, str(error), errors=errors, **more)
        case BadCursor():
            return problem(422, str(error), errors=[{"field": "cursor", "message": str(error)}])
    raise error


def _scope_missing(request: ApiRequest, error: Denied) -> str:
    """What a token lacks, where its holder has the right; empty where the right itself is missing."""
    rights = getattr(request, "rights", NONE)
    if rights.token_scopes is None or error.permission not in list(Permission) or error.kind not in list(Kind):
        return ""
    permission, kind = Permission(error.permission), Kind(error.kind)
    for wanted in (f"{kind}:read", f"{kind}:write"):
        if Rights(rights.grants, frozenset({wanted})).allows(permission, kind):
            return (
                f"This token lacks the scope {wanted}; you hold the right. Sign in and make a token with it on the page Tokens; "
                "a token's scopes never change."
            )
    return ""


def _record(request: ApiRequest, *, permission: str, kind: str) -> None:
    if not scope.is_open():
        record_site_denial(actor=request.actor, role=permission, where=request.path)
    elif request.actor.user is not None:
        record_denial(actor=request.actor, permission=permission, kind=kind, where=request.path)
