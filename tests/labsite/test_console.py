"""The console: for site operators only, who read nothing of what is in a workspace there."""

import pytest
from django.conf import settings
from django.contrib.auth.models import Group
from django.test import Client
from django.urls import get_resolver

from runs.queue import depths
from tests.factories import make_user, make_workspace
from tests.factories_people import bearer, make_operator, make_token, signed_in
from workspaces import scope
from workspaces.access import Actor, Role, SiteRole
from workspaces.commands.benchmark import create_benchmark
from workspaces.commands.member import add_member
from workspaces.models import Engine, SiteEvent, User

PAGES = ("", "people/", "people/new/", "people/operator/", "groups/", "workspaces/", "engines/", "tokens/", "record/")
WRITES = (
    "people/new/", "people/operator/roles/", "people/operator/deactivate/", "people/operator/activate/", "people/operator/password/",
    "groups/", "groups/1/", "groups/1/remove/operator/", "engines/", "engines/local/accept/", "workspaces/lab/weight/", "tokens/lab/token_1/revoke/",
)  # fmt: skip


@pytest.fixture
def console(db: None) -> Client:
    return signed_in(make_operator())


def test_every_page_opens_for_an_operator(console: Client) -> None:
    for page in PAGES:
        assert (page, console.get(f"/console/{page}").status_code) == (page, 200)


def test_every_console_address_asks_for_the_operators_role() -> None:
    addresses = get_resolver("labsite.console").url_patterns
    assert len(addresses) > 15
    for pattern in addresses:
        assert getattr(pattern.callback, "door")["needs"] == SiteRole.SITE_OPERATOR


@pytest.mark.django_db
@pytest.mark.parametrize("roles", [(), (SiteRole.CREATE_WORKSPACE, SiteRole.SITE_AUDITOR)])
def test_others_find_nothing_there_and_change_nothing(roles: tuple[str, ...]) -> None:
    operator = make_operator()
    client = signed_in(Actor.of(make_user("bob", *roles)))
    for page in PAGES:
        assert (page, client.get(f"/console/{page}").status_code) == (page, 404)
    for page in WRITES:
        assert (page, client.post(f"/console/{page}", {"username": "eve", "name": "x", "slug": "x", "slots": "1"}).status_code) == (
            page,
            404,
        )
    assert Client().get("/console/").status_code == 302
    left = SiteEvent.objects.exclude(verb__startswith="sign_in")
    assert set(left.values_list("verb", "actor_label")) == {("access.denied", "Bob")}
    assert left.count() == 10  # the rest of a minute's tries leave no more
    assert operator.user is not None
    operator.user.refresh_from_db()
    assert operator.user.is_active


def test_an_operators_token_does_not_open_it(db: None) -> None:
    operator = make_operator()
    workspace, owner = make_workspace()
    assert operator.user is not None
    with scope.open_workspace(workspace.pk):
        add_member(actor=owner, user=operator.user, role=Role.VIEWER)
    _, text = make_token(workspace, operator, "member:read")
    assert bearer(text).get("/api/v1/workspaces/lab/members").status_code == 200
    assert bearer(text).get("/console/").status_code == 302


def test_an_operator_reads_no_content_of_a_workspace(console: Client) -> None:
    workspace, owner = make_workspace("quiet")
    with scope.open_workspace(workspace.pk):
        create_benchmark(actor=owner, slug="secret-benchmark")
    token, _ = make_token(workspace, owner, "run:read")
    for page in PAGES:
        shown = console.get(f"/console/{page}").content.decode()
        assert "secret-benchmark" not in shown
        assert token.name not in shown or page != "tokens/"
    for page in ("", "members/", "benchmarks/", "settings/", "tokens/", "setup/"):
        assert console.get(f"/workspaces/quiet/{page}").status_code == 404
    assert console.get("/api/v1/workspaces/quiet/members").status_code == 404


def test_making_a_person_shows_a_password_once_that_works(console: Client) -> None:
    made = console.post("/console/people/new/", {"username": "zoe", "display_name": "Zoë", "kind": "person", "site_roles": "site_operator"})
    assert made.status_code == 201
    password = made.content.decode().split('<p class="mono">')[1].split()[0]
    assert Client().login(username="zoe", password=password)
    assert User.objects.get(username="zoe").site_roles == []
    assert password not in console.get("/console/people/zoe/").content.decode()
    assert password not in console.get("/console/record/").content.decode()


def test_roles_groups_and_engines_change_by_buttons(console: Client) -> None:
    make_user("zoe")
    assert console.post("/console/people/zoe/roles/", {"roles": ["create_workspace"]}).status_code == 303
    assert console.post("/console/groups/", {"name": "Team"}).status_code == 303
    group = Group.objects.get(name="Team")
    assert console.post(f"/console/groups/{group.pk}/", {"username": "zoe"}).status_code == 303
    assert "zoe" in console.get(f"/console/groups/{group.pk}/").content.decode()
    assert console.post(f"/console/groups/{group.pk}/remove/zoe/").status_code == 303
    assert console.post("/console/engines/", {"slug": "second", "slots": "2"}).status_code == 303
    assert console.post("/console/engines/second/accept/", {}).status_code == 409
    assert Engine.objects.get(slug="second").is_accepting, "nobody stops an engine without a reason"
    assert console.post("/console/engines/second/accept/", {"reason": "New disks"}).status_code == 303
    assert SiteEvent.objects.latest("sequence").details == {"changed": {"is_accepting": [True, False]}, "reason": "New disks"}
    make_workspace("lab")
    assert console.post("/console/workspaces/lab/weight/", {"weight": "3"}).status_code == 303
    assert 'value="3" aria-label="Weight of lab"' in console.get("/console/workspaces/").content.decode()
    for weight in ("0", "101", "x", "3"):
        assert console.post("/console/workspaces/lab/weight/", {"weight": weight}).status_code == 409
    assert console.post("/console/engines/second/change/", {"slots": "3"}).status_code == 303
    assert Engine.objects.get(slug="second").slots == 3
    for slots, status in (("3", 409), ("x", 409), ("0", 409)):
        assert console.post("/console/engines/second/change/", {"slots": slots}).status_code == status
    far = {"slug": "far", "slots": "2", "kind": "ssh", "host": "far.example", "port": "22", "host_key": "nonsense"}
    answer = console.post("/console/engines/", far)
    assert (answer.status_code, "is no public key" in answer.content.decode()) == (409, True)
    assert not Engine.objects.get(slug="second").is_accepting
    assert console.post("/console/people/zoe/deactivate/").status_code == 303
    verbs = set(SiteEvent.objects.values_list("verb", flat=True))
    assert {"user.site_roles_set", "group.created", "group.member_added", "group.member_removed", "engine.added", "engine.changed"} <= verbs


def test_what_is_wrong_is_said_in_the_form_and_kept(console: Client) -> None:
    answer = console.post("/console/people/new/", {"username": "Not A Name", "kind": "person"})
    assert answer.status_code == 409
    assert "lower-case letters" in answer.content.decode()
    assert 'value="Not A Name"' in answer.content.decode()
    assert console.post("/console/engines/", {"slug": "x", "slots": "0"}).status_code == 422
    assert console.post("/console/people/operator/roles/", {"roles": ["root"]}).status_code == 422
    assert console.post("/console/people/operator/deactivate/").status_code == 409
    for missing in ("people/nobody/", "groups/abc/", "groups/999999/"):
        assert console.get(f"/console/{missing}").status_code == 404


def test_a_leaked_token_is_ended_from_here(console: Client) -> None:
    workspace, owner = make_workspace()
    token, text = make_token(workspace, owner, "member:read")
    assert console.post(f"/console/tokens/lab/{token.public_id}/revoke/").status_code == 303
    assert bearer(text).get("/api/v1/workspaces/lab/members").status_code == 401
    assert console.post(f"/console/tokens/none/{token.public_id}/revoke/").status_code == 404


def test_a_form_without_its_csrf_token_changes_nothing(db: None) -> None:
    operator = make_operator()
    assert operator.user is not None
    client = Client(enforce_csrf_checks=True)
    client.force_login(operator.user)
    assert client.post("/console/engines/", {"slug": "x", "slots": "1"}).status_code == 403
    assert not Engine.objects.exists()


def test_queues_and_health_are_said_in_words(console: Client) -> None:
    page = " ".join(console.get("/console/").content.decode().split())
    assert "<h1>Everything serves</h1>" in page
    assert {name for name in ("collect", "default", "dispatch", "export", "watch") if f"<dt>{name}</dt>" in page} == set(depths())
    assert "jobs wait</dd>" in page
    assert "not answering" not in page


def test_a_queue_that_is_down_is_said_in_words(console: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    for queue in settings.RQ_QUEUES.values():
        monkeypatch.setitem(queue, "URL", "redis://127.0.0.1:1/0")
    page = " ".join(console.get("/console/").content.decode().split())
    assert "<h1>Not ready: queue</h1>" in page
    assert "<dt>All</dt><dd>not answering</dd>" in page
    assert "jobs wait" not in page
    ready = console.get("/readyz")
    assert (ready.status_code, ready.json()["missing"]) == (503, "queue")
