"""A change of rights holds on the very next request, of the session and of the token alike."""

from collections.abc import Callable

import pytest
from django.test import Client

from tests.factories import make_member, make_user, make_workspace
from tests.factories_people import bearer, make_group, make_operator, make_token, membership, signed_in
from workspaces import scope
from workspaces.access import Actor, Role
from workspaces.commands.group import add_to_group, remove_from_group
from workspaces.commands.member import add_member, change_member, remove_member
from workspaces.commands.token import revoke_token
from workspaces.commands.user import activate_user, deactivate_user, give_new_password, set_site_roles
from workspaces.models import Membership, Workspace

MEMBERS = "/api/v1/workspaces/lab/members"


def may_add(client: Client) -> int:
    return client.get("/workspaces/lab/members/add/").status_code


@pytest.fixture
def place(db: None) -> tuple[Workspace, Actor, Actor]:
    workspace, owner = make_workspace()
    return workspace, owner, make_member(workspace, Role.ADMIN, "ada")


def test_demoted(place: tuple[Workspace, Actor, Actor]) -> None:
    workspace, owner, ada = place
    assert ada.user is not None
    browser, program = signed_in(ada), bearer(make_token(workspace, ada, "member:write")[1])
    body = {"user": make_user("bob").username, "role": "viewer"}
    assert may_add(browser) == 200
    with scope.open_workspace(workspace.pk):
        change_member(actor=owner, member=membership_of(ada), role=Role.VIEWER)
    assert may_add(browser) == 403
    assert program.post(MEMBERS, body, "application/json").status_code == 403
    with scope.open_workspace(workspace.pk):
        change_member(actor=owner, member=membership_of(ada), role=Role.ADMIN)
    assert may_add(browser) == 200
    assert program.post(MEMBERS, body, "application/json").status_code == 201


def membership_of(actor: Actor) -> str:
    return Membership.objects.get(user=actor.user).public_id


def test_narrowed_to_kinds(place: tuple[Workspace, Actor, Actor]) -> None:
    workspace, owner, ada = place
    browser = signed_in(ada)
    assert browser.get(MEMBERS).status_code == 200
    with scope.open_workspace(workspace.pk):
        change_member(actor=owner, member=membership_of(ada), role=Role.ADMIN, kinds=["run"])
    assert browser.get(MEMBERS).status_code == 403
    assert may_add(browser) == 403


@pytest.mark.parametrize("how", ["remove", "deactivate"])
def test_shut_out(place: tuple[Workspace, Actor, Actor], how: str) -> None:
    workspace, owner, ada = place
    assert ada.user is not None
    browser, program = signed_in(ada), bearer(make_token(workspace, ada, "member:read")[1])
    assert (may_add(browser), program.get(MEMBERS).status_code) == (200, 200)
    if how == "remove":
        with scope.open_workspace(workspace.pk):
            remove_member(actor=owner, member=membership_of(ada))
        assert may_add(browser) == 404
    else:
        deactivate_user(actor=make_operator(), username="ada")
        assert may_add(browser) == 302
        assert browser.get(MEMBERS).status_code == 401
    assert program.get(MEMBERS).status_code == 401


def test_let_in_again_with_what_was_kept(place: tuple[Workspace, Actor, Actor]) -> None:
    operator = make_operator()
    deactivate_user(actor=operator, username="ada")
    activate_user(actor=operator, username="ada")
    assert may_add(signed_in(place[2])) == 200


def test_token_revoked(place: tuple[Workspace, Actor, Actor]) -> None:
    workspace, _, ada = place
    token, text = make_token(workspace, ada, "member:read")
    assert bearer(text).get(MEMBERS).status_code == 200
    with scope.open_workspace(workspace.pk):
        revoke_token(actor=ada, token=token.public_id)
    assert bearer(text).get(MEMBERS).status_code == 401


def test_in_and_out_of_a_group(place: tuple[Workspace, Actor, Actor]) -> None:
    workspace, owner, _ = place
    operator, bob = make_operator(), make_user("bob")
    group = make_group(operator, "Team")
    with scope.open_workspace(workspace.pk):
        add_member(actor=owner, group=group, role=Role.ADMIN)
    browser = signed_in(Actor.of(bob))
    steps: list[tuple[Callable[[], object], int]] = [
        (lambda: None, 404),
        (lambda: add_to_group(actor=operator, group=group.pk, username="bob"), 200),
        (lambda: remove_from_group(actor=operator, group=group.pk, username="bob"), 404),
    ]
    for change, status in steps:
        change()
        assert may_add(browser) == status


def test_site_role_taken(place: tuple[Workspace, Actor, Actor]) -> None:
    operator, second = make_operator(), make_operator("second")
    browser = signed_in(second)
    assert browser.get("/console/").status_code == 200
    set_site_roles(actor=operator, username="second", roles=[])
    assert browser.get("/console/").status_code == 404


def test_a_new_password_ends_the_sessions(place: tuple[Workspace, Actor, Actor]) -> None:
    browser = signed_in(place[2])
    assert may_add(browser) == 200
    give_new_password(actor=make_operator(), username="ada")
    assert may_add(browser) == 302


def test_rights_are_those_of_the_moment_inside_a_command_too(place: tuple[Workspace, Actor, Actor]) -> None:
    workspace, owner, ada = place
    assert ada.user is not None
    stale = Actor.of(ada.user)
    target = membership(workspace, ada.user).public_id
    with scope.open_workspace(workspace.pk):
        remove_member(actor=owner, member=target)
        with pytest.raises(PermissionError):
            add_member(actor=stale, user=make_user("bob"), role=Role.VIEWER)
