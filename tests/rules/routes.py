"""Every address of the live URLconf with what its door declares: page, API operation, or an address of a third party."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.urls import URLPattern, URLResolver, get_resolver

from workspaces.access import ROLES, Permission

ROLE_ORDER = ("viewer", "researcher", "operator", "approver", "auditor", "admin", "owner")

# Addresses without a door of ours, with the reason of each.
THIRD_PARTY = {
    "account_": "allauth: signing in and out, one's own password",
    "openapi-json": "the description of the API is public",
}
SITE_ROLES = ("signed_in", "create_workspace", "site_operator", "site_auditor")


@dataclass(frozen=True, slots=True)
class Route:
    method: str
    path: str  # `workspaces/<workspace>/runs/<run>/`
    name: str
    door: dict[str, Any] | None
    is_api: bool

    @property
    def parameters(self) -> tuple[str, ...]:
        return tuple(name for name in re.findall(r"<(\w+)>", self.path) if name != "workspace")

    @property
    def needs(self) -> Any:
        return self.door["needs"] if self.door else None

    @property
    def is_in_workspace(self) -> bool:
        return self.door is not None and self.door["scope"] == "workspace"

    def url(self, **values: str) -> str:
        return "/" + re.sub(r"<(\w+)>", lambda match: values[str(match[1])], self.path)

    def roles(self) -> tuple[str, ...]:
        """Roles that the door lets in; a route of the site lets none in by role."""
        if not isinstance(self.needs, Permission):
            return ()
        return tuple(role for role in ROLE_ORDER if self.needs in ROLES[role])

    def line(self) -> str:
        """The route's line in role_routes.txt."""
        kind = f" ({self.door['kind']})" if self.door and self.door["kind"] else ""
        if isinstance(self.needs, Permission):
            return f"{self.method} /{self.path}  {self.needs}{kind}: {' '.join(self.roles())}"
        if self.door is None:
            return f"{self.method} /{self.path}  third party: {third_party_reason(self)}"
        who = {"signed_in": "whoever is signed in", None: f"everyone: {self.door.get('public_reason')}"}.get(self.needs, self.needs)
        return f"{self.method} /{self.path}  site: {who}"


def routes() -> list[Route]:
    """All of them, sorted by path and method; ninja names each operation's address once more for every method."""
    found = {(route.path, route.method): route for route in _walk(get_resolver().url_patterns, "")}
    return [route for _, route in sorted(found.items())]


def third_party_reason(route: Route) -> str:
    return next((reason for name, reason in THIRD_PARTY.items() if route.name.startswith(name)), "")


def _walk(patterns: "list[URLPattern | URLResolver]", before: str) -> Iterator[Route]:
    for pattern in patterns:
        path = before + re.sub(r"<(?:\w+:)?(\w+)>", r"<\1>", str(pattern.pattern))
        if isinstance(pattern, URLResolver):
            yield from _walk(pattern.url_patterns, path)
        else:
            yield from _of(pattern, path)


def _of(pattern: URLPattern, path: str) -> Iterator[Route]:
    name = pattern.name or ""
    path_view = getattr(pattern.callback, "path_view", None)
    if path_view is not None:
        for operation in path_view.operations:
            for method in sorted(operation.methods):
                yield Route(method, path, name or operation.view_func.__name__, getattr(operation.view_func, "door", None), is_api=True)
        return
    door = getattr(pattern.callback, "door", None)
    for method in door["methods"] if door else ("ANY",):
        yield Route(method, path, name, door, is_api=False)
