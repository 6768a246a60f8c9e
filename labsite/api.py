"""The API as a whole, `/api/v1`: routers of both floors behind one door, one OpenAPI document, one form of error (RFC 9457)."""

from collections.abc import Callable
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import URLPattern, URLResolver
from ninja import NinjaAPI
from ninja.errors import HttpError, ValidationError

import runs.api
import workspaces.api
from workspaces.api.door import failed, through_door
from workspaces.api.problem import missing, not_allowed, problem
from workspaces.audit import Denied, Refusal
from workspaces.models import NotFound
from workspaces.queries.paging import BadCursor

IN_WORKSPACE = "/workspaces/{workspace}"


class Api(NinjaAPI):
    def get_root_path(self, path_params: Any) -> str:
        """Where the document says the API is; its own root answers nothing."""
        return "/api/v1/"

    def get_openapi_schema(self, **kwargs: Any) -> Any:
        """Ninja's document, with the scope that the door reads from every path, and the two ways to sign in."""
        kwargs.setdefault("path_prefix", "/api/v1/")  # ninja asks its root page for it, which is not mounted
        schema = super().get_openapi_schema(**kwargs)
        schema.setdefault("components", {})["securitySchemes"] = {
            "bearer": {"type": "http", "scheme": "bearer", "description": "A token of the workspace."},
            "session": {
                "type": "apiKey",
                "in": "cookie",
                "name": "sessionid",
                "description": "A signed-in browser; writes send X-CSRFToken.",
            },
        }
        scope = {
            "name": "workspace",
            "in": "path",
            "required": True,
            "schema": {"type": "string"},
            "description": "Canonical id, slug or UUID.",
        }
        for path, operations in schema["paths"].items():
            if "{workspace}" in path:
                for operation in operations.values():
                    operation["parameters"] = [scope, *operation.get("parameters", [])]
        return schema


api = Api(title="Labsite", version="1", description="The governed research workspace.", docs_url=None, urls_namespace="api")
for tag, routes in (*workspaces.api.ROUTES.items(), *runs.api.ROUTES.items()):
    api.add_router(IN_WORKSPACE if routes.scope == "workspace" else "", routes.router, tags=[tag])


@api.exception_handler(ValidationError)
def not_well_formed(request: HttpRequest, error: ValidationError) -> HttpResponse:
    """422 with every fault at once, each with the field it is about."""
    errors = [{"field": ".".join(str(part) for part in fault["loc"][1:]), "message": fault["msg"]} for fault in error.errors]
    return problem(422, "The request cannot be read as it stands.", errors=errors)


@api.exception_handler(HttpError)
def plain_error(request: HttpRequest, error: HttpError) -> HttpResponse:
    return problem(error.status_code, str(error))


@api.exception_handler(Http404)
def not_there(request: HttpRequest, error: Http404) -> HttpResponse:
    return missing("thing")


for kind in (NotFound, Denied, Refusal, BadCursor):
    api.add_exception_handler(kind, failed)


def guarded_urls() -> tuple[list[URLPattern | URLResolver], str, str]:
    """Ninja's URLs with every view behind the door; the OpenAPI document is public."""
    patterns: list[URLPattern | URLResolver] = [pattern for pattern in api.urls[0] if getattr(pattern, "name", "") == "openapi-json"]
    for pattern in patterns:
        if isinstance(pattern, URLPattern):
            pattern.callback = _read_only(pattern.callback)
    for bound in api._get_bound_routers():
        views = [view for view in bound.path_operations.values() for _ in view.operations]
        for pattern, view in zip(bound.urls_paths(bound.prefix), views, strict=True):
            pattern.callback = through_door(view)
            patterns.append(pattern)
    return patterns, "ninja", "api"


def _read_only(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Ninja's view of the document answers every method."""

    def read(request: HttpRequest, **captured: Any) -> HttpResponse:
        return view(request, **captured) if request.method in ("GET", "HEAD") else not_allowed(request.method, ["GET"])

    setattr(read, "csrf_exempt", True)  # nothing is written
    return read
