"""A thing of another workspace looks exactly like a thing that is not there, on every route that names one."""

import json
import re
import uuid
from typing import Any
from urllib.parse import urlencode

import pytest
from django.apps import apps
from django.test import Client

from tests.factories import make_workspace
from tests.rules.bodies import valid_body, valid_query
from tests.rules.routes import Route, routes
from tests.walls.rows import fill
from workspaces import ids, scope
from workspaces.models import NotFound, Row

# Captured names that are no row of a workspace.
NO_ROW = {
    "kind": "kinds of requests are files, not rows",
    "step": "a step of creating a workspace",
    "number": "counts within its parent",
    "path": "a file within its version",
    "file": "a file within its version",
    "name": "a file within its run",
    "word": "what an invitation's link holds",
    "key": "a metric within its run",
    "username": "people belong to the site",
    "user": "people belong to the site",
    "engine": "engines belong to the site",
    "group": "groups belong to the site",
}
# Captured names that are not their model's name.
MODELS = {
    "failure": "runs.FailureGroup",
    "event": "workspaces.AuditEvent",
    "member": "workspaces.Membership",
    "overlap": "runs.OverlapCheck",
    "check": "runs.CheckResult",
    "share": "workspaces.ShareGrant",
    "grant": "workspaces.ShareGrant",
    "version": "workspaces.DatasetVersion",
    "approval": "workspaces.Approval",
    "spend": "workspaces.ExternalSpend",
    "budget": "workspaces.Limit",
}
# Routes that take a form, with one that is right.
FORMS = {
    "POST /api/v1/workspaces/<workspace>/agents/<agent>/versions/upload": {"spec": '{"argv": ["python"]}', "complete": "1"},
}
ROUTES = [route for route in routes() if route.is_in_workspace and route.parameters]


def model_of(parameter: str) -> str | None:
    """Label of the model whose rows a captured name names."""
    if parameter in NO_ROW:
        return None
    if parameter in MODELS:
        return MODELS[parameter]
    found = [model._meta.label for model in apps.get_models() if issubclass(model, Row) and model._meta.model_name == parameter]
    assert len(found) == 1, f"<{parameter}> names no model; say in test_foreign_ids.py what it is"
    return found[0]


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
def test_every_captured_name_is_known(route: Route) -> None:
    for parameter in route.parameters:
        model_of(parameter)


@pytest.mark.django_db(transaction=True)
def test_a_foreign_id_looks_like_a_missing_one() -> None:
    first, owner = make_workspace("first")
    second, _ = make_workspace("second")
    fill(first)
    foreign = fill(second)
    assert owner.user is not None
    client = Client()
    client.force_login(owner.user)
    faults = []
    for route in ROUTES:
        named = [parameter for parameter in route.parameters if model_of(parameter)]
        if not named:
            continue
        theirs, nobodys = {}, {}
        for parameter in route.parameters:
            label = model_of(parameter)
            theirs[parameter] = foreign[label].pk.hex if label else "1"
            nobodys[parameter] = uuid.uuid4().hex if label else "1"
        answers = [_ask(client, route, ids) for ids in (theirs, nobodys)]
        line = f"{route.method} /{route.path}"
        if answers[0][0] != 404:
            faults.append(f"{line} answers {answers[0][0]} for another workspace's thing: {answers[0][1][:200]}")
        if answers[0] != answers[1]:
            faults.append(f"{line} tells a foreign thing from a missing one")
    assert faults == [], "\n".join(faults)


def _ask(client: Client, route: Route, values: dict[str, str]) -> tuple[int, str]:
    """Status and text of the answer to a request that is right but for its ids."""
    url, form = route.url(workspace="first", **values), FORMS.get(f"{route.method} /{route.path}")
    if form is not None:
        response = client.post(url, form)
    elif route.method == "PATCH" and route.path.endswith("/uploads/<upload>"):
        told = {"Tus-Resumable": "1.0.0", "Upload-Offset": "0"}
        response = client.generic("PATCH", url, b"x", content_type="application/offset+octet-stream", headers=told)
    elif route.is_api and route.method != "GET":
        response = client.generic(route.method, f"{url}?{urlencode(valid_query(route))}", _body(route), content_type="application/json")
    else:
        response = client.generic(route.method, f"{url}?{urlencode(valid_query(route))}" if route.is_api else url)
    text = response.content.decode()
    for value in values.values():
        if len(value) == 32:
            text = text.replace(value, "…").replace(str(uuid.UUID(value)), "…")
    return response.status_code, re.sub(r'(csrf[\w-]*" ?(?:value|content)=")[^"]+', r"\1", text)


def _body(route: Route) -> bytes:
    made = valid_body(route)
    return b"" if made is None else json.dumps(made).encode()


@pytest.mark.django_db(transaction=True)
def test_no_spelling_of_a_foreign_id_is_found() -> None:
    """Key, canonical id and slug."""
    first, _ = make_workspace("first")
    second, _ = make_workspace("second")
    foreign: dict[str, Any] = fill(second)
    tried = 0
    with scope.open_workspace(first.pk):
        for row in foreign.values():
            spellings = {row.pk.hex, str(row.pk), ids.canonical(row.prefix, None, row.pk), row.public_id, getattr(row, "slug", row.pk.hex)}
            for text in spellings:
                with pytest.raises(NotFound):
                    type(row).objects.find(text)
                tried += 1
    assert tried > 100
