"""A workspace through the API: read, settled step by step, opened once nothing is missing."""

import pytest
from django.test import Client

from tests.factories import make_workspace
from tests.factories_pages import client_of
from tests.factories_runs import make_laboratory

pytestmark = pytest.mark.django_db


def send(client: Client, method: str, path: str, body: object = None) -> tuple[int, dict[str, object]]:
    answer = client.generic(method, f"/api/v1/workspaces/{path}", body if isinstance(body, str) else "", content_type="application/json")
    return answer.status_code, answer.json()


def test_it_says_what_is_missing_and_opens_only_without() -> None:
    _, owner = make_workspace("young")
    client = client_of(owner)
    status, found = send(client, "GET", "young")
    assert (status, found["id"], found["status"]) == (200, "ws_young", "configuring")
    assert {step["name"]: step["is_done"] for step in found["steps"]}["owners"] is True  # type: ignore[attr-defined]  # JSON
    status, refused = send(client, "POST", "young/activate")
    assert status == 409
    assert "Bind at least one pool." in str(refused["errors"])
    status, found = send(
        client, "PATCH", "ws_young", '{"zone": "Europe/Berlin", "week_start": 6, "billing_account": "acc", "cost_centre": "cc"}'
    )
    assert (status, found["zone"], found["week_start"]) == (200, "Europe/Berlin", 6)
    status, refused = send(client, "PATCH", "young", '{"zone": "Mars/Olympus"}')
    assert (status, refused["errors"][0]["field"]) == (422, "zone")  # type: ignore[index]  # JSON
    assert send(client, "PATCH", "young", '{"status": "active"}')[0] == 422


def test_an_open_workspace_is_not_opened_twice() -> None:
    laboratory = make_laboratory()
    status, found = send(client_of(laboratory.owner), "GET", "lab")
    assert (status, found["status"]) == (200, "active")
    assert all(step["is_done"] for step in found["steps"])  # type: ignore[attr-defined]  # JSON
    assert send(client_of(laboratory.owner), "POST", "lab/activate")[0] == 409
