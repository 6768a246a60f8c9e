"""GET writes nothing, and a page asks the database no more than it did when it was checked in."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tests.factories import make_workspace
from tests.rules.baselines import compare
from tests.rules.routes import Route, routes
from tests.rules.test_foreign_ids import model_of
from tests.walls.owner_sql import owner_connection
from tests.walls.rows import fill
from workspaces.models import User

COUNTS = Path(__file__).parent / "query_counts.json"
PAGES = [route for route in routes() if route.method == "GET" and route.door is not None and route.door["scope"] in ("workspace", "site")]
QUERIES = {"api/v1/workspaces/<workspace>/search": "?q=table"}  # what a page demands
# Telemetry and the session's own book-keeping, which a visit may touch.
DENIAL = {"workspaces_auditevent", "workspaces_eventpayload", "workspaces_audithead"}
MAY_CHANGE = {"django_session", "workspaces_tokenuse"}


def fingerprints() -> dict[str, str]:
    """Every table with the number and the versions of its rows."""
    with owner_connection() as opened:
        tables = [name for (name,) in opened.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1").fetchall()]
        return {
            table: str(opened.execute(f'SELECT count(*), sum(hashtext(t.ctid::text || t.xmin::text)) FROM "{table}" t').fetchone())
            for table in tables
            if table not in MAY_CHANGE
        }


@pytest.fixture
def visited() -> "tuple[Client, dict[str, Any]]":
    """A workspace with a row in every table, and its owner, who holds every site role as well."""
    workspace, owner = make_workspace()
    assert owner.user is not None
    owner.user.site_roles = [role.value for role in User.SiteRole]
    owner.user.save()
    client = Client(raise_request_exception=True)
    client.force_login(owner.user)
    group = Group.objects.create(name="Readers")
    owner.user.groups.add(group)
    return client, fill(workspace) | {"user": owner.user, "group": group}


def address(route: Route, rows: dict[str, Any]) -> str:
    """Of a page that is there, also where what it names is no row of a workspace."""
    files = "workspaces.AgentFile" if "agent" in route.parameters else "workspaces.DatasetFile"
    named = {"username": rows["user"].username, "group": str(rows["group"].pk), "path": rows[files].path, "file": rows[files].path}
    values = {"workspace": "lab"}
    for parameter in route.parameters:
        label = model_of(parameter)
        values[parameter] = rows[label].pk.hex if label else named.get(parameter, "1")
    return route.url(**values) + QUERIES.get(route.path, "")


@pytest.mark.django_db(transaction=True)
def test_get_writes_nothing(visited: Any) -> None:
    client, rows = visited
    before = fingerprints()
    for route in PAGES:
        response = client.get(address(route, rows))
        if response.streaming:
            list(response.streaming_content)
        after = fingerprints()
        written = {table for table in after if after[table] != before[table]}
        if response.status_code in (403, 404):
            written -= DENIAL  # the attempt is on the record
        assert written == set(), f"GET {route.path} writes"
        before = after


@pytest.mark.django_db(transaction=True)
def test_pages_ask_no_more_than_they_did(visited: Any) -> None:
    client, rows = visited
    counts: dict[str, int] = {}
    for route in PAGES:
        _read(client, address(route, rows))  # content types and the like are remembered from the first visit on
        with CaptureQueriesContext(connection) as asked:
            status = _read(client, address(route, rows))
        if status == 200:
            counts[route.path] = len(asked)
    kept = json.loads(COUNTS.read_text()) if COUNTS.exists() else {}
    more = {path: (kept[path], count) for path, count in counts.items() if path in kept and count > kept[path]}
    assert more == {}, f"more queries than before (before, now): {more}"
    compare(COUNTS, json.dumps(counts, indent=1, sort_keys=True) + "\n")


def _read(client: Client, url: str) -> int:
    """Status of the page, read to its end."""
    response: Any = client.get(url)
    if response.streaming:
        list(response.streaming_content)
    response.close()
    return int(response.status_code)
