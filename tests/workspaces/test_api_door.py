"""What every address below `/api/` answers when it is asked for something that it does not have: in one form, and never nothing at all."""

import base64
import json
from typing import Any

import pytest
from django.test import Client
from django.urls import resolve

from tests.factories import make_member, make_workspace
from tests.factories_seed import Caller
from tests.rules.routes import Route, routes
from workspaces import scope
from workspaces.access import Actor, Role
from workspaces.api.door import query_keys
from workspaces.commands.token import create_token
from workspaces.models import AuditEvent, User, Workspace

pytestmark = pytest.mark.django_db
BASE = "/api/v1/workspaces/lab"
API_ROUTES = [route for route in routes() if route.is_api]
LISTS = [
    *("agents", "approvals", "artifacts", "benchmarks", "budgets", "datasets", "evaluations", "events", "invitations", "ledger", "members"),
    *("members/permissions", "objectives", "pools", "queue", "runs", "shares", "sweeps", "tokens"),
]


@pytest.fixture
def lab() -> tuple[Workspace, Actor, Client]:
    workspace, owner = make_workspace("lab")
    assert owner.user is not None
    client = Client(raise_request_exception=False)
    client.force_login(owner.user)
    return workspace, owner, client


def problem(answer: Any, status: int) -> dict[str, Any]:
    assert (answer.status_code, answer["Content-Type"]) == (status, "application/problem+json"), answer.content[:300]
    body: dict[str, Any] = answer.json()
    assert body["status"] == status
    assert body["title"] and body["detail"]
    return body


@pytest.mark.parametrize("route", API_ROUTES, ids=lambda route: f"{route.method} {route.path}")
def test_an_unknown_query_key_is_named(lab: tuple[Workspace, Actor, Client], route: Route) -> None:
    if route.needs == User.SiteRole.SITE_OPERATOR:
        User.objects.update(site_roles=[User.SiteRole.SITE_OPERATOR])
    url = route.url(workspace="lab", **dict.fromkeys(route.parameters, "1"))
    answer = lab[2].generic(route.method, f"{url}?sise=3", b"{}", content_type="application/json")
    if route.method == "HEAD":  # which has no body to name it in
        assert answer.status_code == 422
        return
    body = problem(answer, 403 if route.needs == "create_workspace" else 422)
    assert "sise" in [error["field"] for error in body["errors"]], body


def test_the_known_keys_are_told_and_none_is_taken_twice(lab: tuple[Workspace, Actor, Client]) -> None:
    told = problem(lab[2].get(f"{BASE}/runs?size=3"), 422)["errors"][0]["message"]
    assert "limit" in told and "cursor" in told
    assert problem(lab[2].get(f"{BASE}/runs?limit=3&limit=4"), 422)["errors"][0]["field"] == "limit"
    assert "no query" in problem(lab[2].get(f"{BASE}?x=1"), 422)["errors"][0]["message"]
    assert problem(lab[2].get(f"{BASE}/events?from=2026-01-01&since=x"), 422)["errors"][0]["field"] == "since"


def is_list(route: Route) -> bool:
    """Does the answer have items?"""
    operation = operation_of(route)
    shape = operation.response_models.get(200)
    answer = shape.model_fields["response"].annotation if shape is not None and hasattr(shape, "model_fields") else None
    return "items" in getattr(answer, "model_fields", {}) and not route.path.endswith("/search")  # a few hits of each noun


def operation_of(route: Route) -> Any:
    view = resolve(route.url(workspace="lab", **dict.fromkeys(route.parameters, "x"))).func
    return next(one for one in view.path_view.operations if route.method in one.methods)  # type: ignore[attr-defined]  # the door's


# A moment that has no place in UTC.
BEFORE_TIME = base64.urlsafe_b64encode(json.dumps(["0001-01-01T00:00:00+23:59", "0" * 32]).encode()).decode().rstrip("=")


def test_every_list_has_limit_and_cursor_and_no_size() -> None:
    lists = [route for route in API_ROUTES if route.method == "GET" and is_list(route)]
    assert len(lists) >= 25
    for route in API_ROUTES:
        assert "size" not in query_keys(operation_of(route)), route.path
        if route.method == "GET":
            answers = str(operation_of(route).response_models)
            assert "list[" not in answers, f"{route.path} answers a bare list"
    for route in lists:
        assert {"limit", "cursor"} <= set(query_keys(operation_of(route))), f"{route.path} cannot be paged"


@pytest.mark.parametrize("noun", LISTS)
def test_a_list_says_its_largest_page_and_takes_no_strange_cursor(lab: tuple[Workspace, Actor, Client], noun: str) -> None:
    assert lab[2].get(f"{BASE}/{noun}?limit=500").status_code == 200
    # A place of another list may be one of this list as well, where it is no moment; a fault of labsite it never is.
    assert lab[2].get(f"{BASE}/{noun}?cursor={BEFORE_TIME}").status_code in (200, 422)
    for bad in ("limit=0", "limit=501", "limit=x", "cursor=x", "cursor=W10", "cursor=eyJhIjoxfQ", "cursor=W3siYSI6MX1d"):
        answer = lab[2].get(f"{BASE}/{noun}?{bad}")
        assert problem(answer, 422)["errors"][0]["field"] == bad.partition("=")[0]


def test_tokens_end_nowhere(lab: tuple[Workspace, Actor, Client]) -> None:
    workspace, owner, client = lab
    with scope.open_workspace(workspace.pk):
        made = [create_token(actor=owner, name=f"t{number}", scopes=["run:read"])[0].public_id for number in range(5)]
    assert walked(client, f"{BASE}/tokens") == made[::-1]


def test_permissions_and_invitations_are_paged(lab: tuple[Workspace, Actor, Client]) -> None:
    workspace, _, client = lab
    for number in range(4):
        make_member(workspace, Role.VIEWER, f"viewer{number}")
    names = walked(client, f"{BASE}/members/permissions", key="user")
    assert len(names) == len(set(names)) == 5
    invited = [
        client.post(f"{BASE}/invitations", {"email": f"p{number}@example.org", "role": "viewer"}, "application/json").json()["id"]
        for number in range(5)
    ]
    assert walked(client, f"{BASE}/invitations") == invited[::-1]


def walked(client: Client, url: str, *, key: str = "id") -> list[str]:
    """Everything that a list has, two at a time."""
    seen: list[str] = []
    cursor = ""
    while True:
        page = client.get(f"{url}?limit=2{cursor}").json()
        assert len(page["items"]) <= 2
        seen += [item[key] for item in page["items"]]
        if page["next"] is None:
            return seen
        cursor = f"&cursor={page['next']}"


@pytest.mark.parametrize(
    "path", ["", "v1", "v1/", "v1/nonsense", "v2/runs", "v1/workspaces/lab/nonsense", "v1/workspaces/other/nonsense", "v1/me/"]
)
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_an_address_that_is_not_there(lab: tuple[Workspace, Actor, Client], path: str, method: str) -> None:
    """One body, whatever workspace the address seems to name and whoever asks."""
    make_workspace("other")
    for client in (lab[2], Client()):
        assert "no such address" in problem(client.generic(method, f"/api/{path}"), 404)["detail"]


def test_a_method_that_an_address_does_not_take(lab: tuple[Workspace, Actor, Client]) -> None:
    answer = lab[2].delete(f"{BASE}/runs")
    assert "DELETE" in problem(answer, 405)["detail"]
    assert answer["Allow"] == "GET, POST"
    assert lab[2].post("/api/v1/openapi.json")["Allow"] == "GET"
    problem(lab[2].put("/api/v1/me"), 405)
    problem(Client().delete(f"{BASE}/runs"), 401)
    make_workspace("other")
    hidden, missing = lab[2].delete("/api/v1/workspaces/other/runs"), lab[2].delete("/api/v1/workspaces/nowhere/runs")
    assert problem(hidden, 404) == problem(missing, 404)


def test_broken_and_large_requests(lab: tuple[Workspace, Actor, Client]) -> None:
    problem(lab[2].post(f"{BASE}/benchmarks", "{", "application/json"), 400)
    problem(lab[2].get(f"{BASE}/runs?status=%00"), 400)
    problem(lab[2].post(f"{BASE}/benchmarks", "x" * 1_100_000, "application/json"), 413)
    problem(Client().post(f"{BASE}/benchmarks", "x" * 1_100_000, "application/json"), 413)
    problem(lab[2].get(f"{BASE}/runs", headers={"Host": "elsewhere.example"}), 400)
    assert "X-CSRFToken" in problem(strict(lab[1]).post(f"{BASE}/benchmarks", {}, "application/json"), 401)["detail"]


def strict(actor: Actor) -> Client:
    client = Client(enforce_csrf_checks=True)
    assert actor.user is not None
    client.force_login(actor.user)
    return client


def test_a_fault_of_ours_is_a_problem_too(lab: tuple[Workspace, Actor, Client], monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> None:
        raise RuntimeError("secret words")

    monkeypatch.setattr("workspaces.api.benchmark.benchmark_rows", fails)
    answer = lab[2].get(f"{BASE}/benchmarks")
    problem(answer, 500)
    assert b"secret words" not in answer.content


def test_pages_stay_pages(lab: tuple[Workspace, Actor, Client]) -> None:
    answer = lab[2].get("/workspaces/lab/nonsense/")
    assert (answer.status_code, answer["Content-Type"].partition(";")[0]) == (404, "text/html")


def asks(workspace: Workspace, actor: Actor, *scopes: str) -> Caller:
    with scope.open_workspace(workspace.pk):
        return Caller(create_token(actor=actor, name="test", scopes=scopes)[1])


def test_a_missing_scope_is_named_where_the_right_is_held(lab: tuple[Workspace, Actor, Client]) -> None:
    workspace, owner, _ = lab
    caller = asks(workspace, owner, "run:read")
    body = json.dumps({"slug": "speed"})
    assert "lacks the scope benchmark:write" in problem(caller.post(f"{BASE}/benchmarks", body), 403)["detail"]
    assert "lacks the scope benchmark:read" in problem(caller.get(f"{BASE}/benchmarks"), 403)["detail"]
    assert "lacks the scope audit:read" in problem(caller.get(f"{BASE}/events"), 403)["detail"]
    with scope.open_workspace(workspace.pk):
        assert AuditEvent.objects.filter(verb="access.denied").count() == 3
    viewer = asks(workspace, make_member(workspace, Role.VIEWER), "run:read")
    without_right = problem(viewer.post(f"{BASE}/benchmarks", body), 403)["detail"]
    assert "scope" not in without_right
    assert "edit registry" in without_right
