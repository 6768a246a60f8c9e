"""Every route has a door, every role meets what the table says, and the table is the one checked in."""

import secrets
from pathlib import Path

import pytest
from django.test import Client

from tests.factories import make_member, make_user, make_workspace
from tests.rules.baselines import compare
from tests.rules.routes import ROLE_ORDER, SITE_ROLES, Route, routes, third_party_reason
from workspaces.access import Permission

ENDS_MEMBERSHIP = {"member-leave", "leave"}  # asked last
TABLE = Path(__file__).parent / "role_routes.txt"


def check_door(route: Route) -> None:
    """A permission or site role, or a written reason to have none."""
    if route.door is None:
        assert third_party_reason(route), f"{route.path} has no door: declare it with page(), site_page() or Routes"
        return
    if route.needs is None:
        assert len(route.door.get("public_reason", "")) > 10, f"{route.path} is open to everyone without a written reason"
    elif route.is_in_workspace:
        assert isinstance(route.needs, Permission), f"{route.path} needs {route.needs!r}, which is no permission"
        assert f"{route.path}/".removeprefix("api/v1/").startswith("workspaces/<workspace>/"), f"{route.path} lies outside its workspace"
    else:
        assert route.needs in SITE_ROLES, f"{route.path} needs {route.needs!r}, which is no site role"


@pytest.mark.parametrize("route", routes(), ids=lambda route: f"{route.method} {route.path}")
def test_every_route_has_a_door(route: Route) -> None:
    check_door(route)


def test_names_are_unique() -> None:
    pages = [route.name for route in routes() if not route.is_api and route.door and route.method == route.door["methods"][0]]
    assert len(pages) == len(set(pages))


def test_the_role_table_is_the_one_checked_in() -> None:
    compare(TABLE, "\n".join(route.line() for route in routes()) + "\n")


@pytest.mark.django_db
@pytest.mark.parametrize("role", ROLE_ORDER)
def test_each_role_meets_what_the_table_says(role: str) -> None:
    """Asks every route with ids that are not there: without the right 403, with it anything but 403 and no fault of ours."""
    workspace, _ = make_workspace()
    actor = make_member(workspace, role)
    assert actor.user is not None
    client = Client()
    client.force_login(actor.user)
    for route in sorted(routes(), key=lambda route: route.name in ENDS_MEMBERSHIP):
        if not route.is_in_workspace or route.needs is None:
            continue
        url = route.url(workspace="lab", **dict.fromkeys(route.parameters, secrets.token_hex(16)))
        status = client.generic(route.method, url, b"{}", content_type="application/json").status_code
        if role in route.roles():
            assert status not in (401, 403), f"{role} is kept out of {route.method} {url} ({status})"
            assert status < 500, f"{route.method} {url} fails"
        else:
            assert status == 403, f"{role} meets {status} at {route.method} {url}"


@pytest.mark.django_db
def test_strangers_and_visitors_meet_nothing() -> None:
    """Someone signed in without a role here meets what a missing workspace shows; a visitor is asked to sign in."""
    make_workspace()
    _, stranger = make_workspace("elsewhere")
    assert stranger.user is not None
    client, visitor = Client(), Client()
    client.force_login(stranger.user)
    for route in routes():
        if not route.is_in_workspace or route.needs is None:
            continue
        ids = dict.fromkeys(route.parameters, secrets.token_hex(16))
        here = client.generic(route.method, route.url(workspace="lab", **ids))
        missing = client.generic(route.method, route.url(workspace="gone", **ids))
        assert (here.status_code, missing.status_code) == (404, 404), f"{route.method} {route.path}"
        assert here.content == missing.content, f"{route.method} {route.path} tells strangers that the workspace is there"
        asked = visitor.generic(route.method, route.url(workspace="lab", **ids)).status_code
        assert asked == (401 if route.is_api else 302), f"a visitor meets {asked} at {route.method} {route.path}"


@pytest.mark.django_db
def test_site_roles_are_asked_for() -> None:
    """Whoever has no site role meets nothing of the site's own pages, and visitors are asked to sign in."""
    client, visitor = Client(), Client()
    client.force_login(make_user("plain"))
    for route in routes():
        if route.door is None or route.is_in_workspace or route.needs is None:
            continue
        url = route.url(**dict.fromkeys(("workspace", *route.parameters), secrets.token_hex(16)))
        asked = visitor.generic(route.method, url).status_code
        assert asked == (401 if route.is_api else 302), f"a visitor meets {asked} at {route.method} {url}"
        if route.needs != "signed_in":
            met = client.generic(route.method, url, b"{}", content_type="application/json").status_code
            assert met == (403 if route.is_api else 404), f"a person without site roles meets {met} at {route.method} {url}"
