"""Creating a workspace in the browser, step by step; settings and preferences; what a form may not set."""

import re

import pytest
from django.test import Client

from tests.factories import make_member, make_user, make_workspace
from tests.factories_people import signed_in
from workspaces.access import Actor, Role, SiteRole
from workspaces.models import User, Workspace


@pytest.fixture
def creator(db: None) -> Client:
    return signed_in(Actor.of(make_user("carla", SiteRole.CREATE_WORKSPACE)))


def test_from_an_empty_list_to_a_settled_workspace(creator: Client) -> None:
    assert "No workspace is open to you yet" in creator.get("/workspaces/").content.decode()
    assert creator.post("/workspaces/new/", {"name": "Lab", "slug": "lab"})["Location"] == "/workspaces/lab/setup/"
    assert "8 of 9 steps are left" in creator.get("/workspaces/lab/setup/").content.decode()
    steps = {
        "billing": {"billing_account": "R&D", "cost_centre": "7"},
        "boundary": {"boundary_kind": "team", "boundary_reason": "its own data"},
        "zone": {"zone": "Europe/Berlin", "week_start": "6"},
        "visibility": {"visibility": "private"},
        "region": {"region": "local"},
    }
    for step, values in steps.items():
        assert creator.post(f"/workspaces/lab/settings/{step}/", values | {"from": "setup"})["Location"] == "/workspaces/lab/setup/"
    page = creator.get("/workspaces/lab/setup/").content.decode()
    assert "3 of 9 steps are left" in page
    assert "weeks begin on Sunday" in page
    assert creator.post("/workspaces/lab/settings/activate/").status_code == 409
    assert Workspace.objects.get().status == Workspace.Status.CONFIGURING


@pytest.mark.parametrize(
    ("step", "values", "status", "words"),
    [
        ("zone", {"zone": "Mars/Olympus", "week_start": "0"}, 409, "no IANA time zone"),
        ("zone", {"zone": "Europe/Berlin", "week_start": "9"}, 422, "Mars"),
        ("billing", {"billing_account": "x" * 201, "cost_centre": "7"}, 422, "200"),
        ("region", {"region": "elsewhere"}, 422, "elsewhere"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_is_settled(creator: Client, step: str, values: dict[str, str], status: int, words: str) -> None:
    creator.post("/workspaces/new/", {"name": "Lab", "slug": "lab"})
    answer = creator.post(f"/workspaces/lab/settings/{step}/", values)
    assert answer.status_code == status
    assert words in answer.content.decode() or words == "Mars"
    assert Workspace.objects.get().zone == ""


def test_the_region_stays(creator: Client) -> None:
    creator.post("/workspaces/new/", {"name": "Lab", "slug": "lab"})
    creator.post("/workspaces/lab/settings/region/", {"region": "local"})
    assert "Store in which every file lies" not in creator.get("/workspaces/lab/settings/").content.decode()


@pytest.mark.parametrize("slug", ["new", "Lab 1", "", "x" * 65, "0" * 32])
def test_short_names_that_are_none_are_refused(creator: Client, slug: str) -> None:
    assert creator.post("/workspaces/new/", {"name": "Lab", "slug": slug}).status_code in (409, 422)
    assert not Workspace.objects.exists()


@pytest.mark.django_db
def test_without_the_site_role_there_is_no_page_to_create() -> None:
    bob = signed_in(Actor.of(make_user("bob")))
    assert bob.get("/workspaces/new/").status_code == 404
    assert bob.post("/workspaces/new/", {"name": "Lab", "slug": "lab"}).status_code == 404


@pytest.mark.django_db
def test_a_form_sets_only_its_own_fields() -> None:
    make_workspace()
    owner = Client()
    owner.force_login(User.objects.get(username="lab-owner"))
    owner.post("/workspaces/lab/settings/name/", {"name": "Renamed", "status": "active", "slug": "other", "region": "local"})
    workspace = Workspace.objects.get()
    assert (workspace.name, workspace.status, workspace.slug, workspace.region) == ("Renamed", "configuring", "lab", "")
    assert owner.post("/workspaces/lab/settings/status/", {"status": "active"}).status_code == 404


@pytest.mark.django_db
@pytest.mark.parametrize("role", [Role.VIEWER, Role.RESEARCHER, Role.OPERATOR, Role.APPROVER, Role.AUDITOR])
def test_below_admin_settings_are_read_only(role: str) -> None:
    workspace, _ = make_workspace()
    client = signed_in(make_member(workspace, role))
    page = client.get("/workspaces/lab/settings/").content.decode()
    assert "Change</button>" not in page
    assert client.post("/workspaces/lab/settings/name/", {"name": "Mine"}).status_code == 403
    assert client.get("/workspaces/lab/members/add/").status_code == 403
    assert Workspace.objects.get().name == "Lab"


@pytest.mark.django_db
def test_preferences_change_nothing_but_themselves() -> None:
    bob = make_user("bob")
    client = signed_in(Actor.of(bob))
    fields = {
        "display_name": "Robert",
        "theme": "dark",
        "density": "compact",
        "zone": "Asia/Tokyo",
        "site_roles": "site_operator",
        "username": "admin",
        "kind": "agent",
    }
    assert client.post("/preferences/", fields).status_code == 303
    bob.refresh_from_db()
    assert (bob.display_name, bob.theme, bob.density, bob.zone, bob.has_shortcuts) == ("Robert", "dark", "compact", "Asia/Tokyo", False)
    assert (bob.username, bob.kind, bob.site_roles) == ("bob", "person", [])
    page = client.get("/preferences/").content.decode()
    assert 'data-theme="dark" data-density="compact"' in page
    assert re.search(r'<input[^>]*value="compact"[^>]* checked', page)
    assert 'data-preferred="off"' in page
    assert client.post("/preferences/", fields | {"zone": "Nowhere"}).status_code == 409
    assert client.post("/preferences/", fields | {"density": "dense"}).status_code == 422
