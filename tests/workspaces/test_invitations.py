"""Invitations: one use, a time, one address, one role; whatever is wrong with the link, the page is the same."""

import threading
from datetime import timedelta
from unittest import mock

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from tests.factories import make_member, make_user, make_workspace
from tests.factories_people import make_invitation, membership, signed_in
from workspaces import scope
from workspaces.access import Actor, Role, rights_of
from workspaces.audit import Refusal
from workspaces.commands.invitation import accept_as_new_person, accept_invitation, invite, revoke_invitation
from workspaces.commands.member import change_member
from workspaces.models import AuditEvent, EventPayload, Invitation, Membership, SiteEvent, User, Workspace

PASSWORD = "correct horse battery staple"


def address(workspace: Workspace, invitation: Invitation, secret: str) -> str:
    return f"/workspaces/{workspace.slug}/invitations/{invitation.pk.hex}/{secret}/"


def newcomer(**changed: str) -> dict[str, str]:
    return {"username": "ada", "display_name": "Ada", "password": PASSWORD, "password_again": PASSWORD} | changed


@pytest.mark.django_db
def test_a_stranger_makes_an_account_joins_and_signs_in() -> None:
    workspace, owner = make_workspace()
    invitation, secret = make_invitation(workspace, owner)
    client = Client()
    shown = client.get(address(workspace, invitation, secret))
    assert shown.status_code == 200
    assert "ada@example.org" in shown.content.decode()
    assert client.post(address(workspace, invitation, secret), newcomer()).status_code == 303
    ada = User.objects.get(username="ada")
    assert (ada.email, membership(workspace, ada).role) == ("ada@example.org", "researcher")
    assert client.login(username="ada", password=PASSWORD)
    assert client.get(f"/workspaces/{workspace.slug}/members/").status_code == 200
    with scope.open_workspace(workspace.pk):
        event = AuditEvent.objects.get(verb="invitation.accepted")
    assert (event.actor_id, event.actor_label) == (ada.pk, "Ada")
    assert SiteEvent.objects.filter(verb="user.invited_in", subject_label="Ada").exists()


@pytest.mark.django_db
def test_reading_the_link_uses_nothing_up() -> None:
    workspace, owner = make_workspace()
    invitation, secret = make_invitation(workspace, owner)
    for _ in range(3):
        assert Client().get(address(workspace, invitation, secret)).status_code == 200
    with scope.open_workspace(workspace.pk):
        assert Invitation.objects.get().accepted_at is None


@pytest.mark.django_db
def test_a_signed_in_person_accepts_with_the_account_they_have() -> None:
    workspace, owner = make_workspace()
    invitation, secret = make_invitation(workspace, owner, kinds=["run"])
    bob = Actor.of(make_user("bob"))
    assert signed_in(bob).post(address(workspace, invitation, secret)).status_code == 303
    assert bob.user is not None
    assert membership(workspace, bob.user).kinds == ["run"]


@pytest.mark.django_db
def test_an_account_with_another_address_is_told_so() -> None:
    workspace, owner = make_workspace()
    invitation, secret = make_invitation(workspace, owner)
    bob = make_user("bob")
    bob.email = "bob@example.org"
    bob.save()
    answer = signed_in(Actor.of(bob)).post(address(workspace, invitation, secret))
    assert answer.status_code == 409
    assert "ada@example.org" in answer.content.decode()
    with scope.open_workspace(workspace.pk):
        assert not Membership.objects.filter(user=bob).exists()


@pytest.mark.django_db
def test_used_expired_revoked_and_wrong_look_exactly_like_no_workspace() -> None:
    workspace, owner = make_workspace()
    used, expired, revoked, good = (make_invitation(workspace, owner, email=f"p{n}@example.org") for n in range(4))
    with scope.open_workspace(workspace.pk):
        accept_invitation(actor=Actor.of(make_user("bob")), invitation=used[0].pk.hex, secret=used[1])
        revoke_invitation(actor=owner, invitation=revoked[0].public_id)
    addresses = {
        "used": address(workspace, *used),
        "revoked": address(workspace, *revoked),
        "wrong": address(workspace, good[0], "0" * 64),
        "another's": address(workspace, good[0], revoked[1]),
        "unknown": f"/workspaces/{workspace.slug}/invitations/nothing/{good[1]}/",
    }
    missing = Client().get(f"/workspaces/no-such/invitations/{good[0].pk.hex}/{good[1]}/")
    assert missing.status_code == 404
    for name, url in addresses.items():
        for answer in (Client().get(url), Client().post(url, newcomer())):
            assert (name, answer.status_code, answer.content) == (name, 404, missing.content)
    later = timezone.now() + timedelta(days=8)
    with mock.patch("workspaces.queries.invitation.timezone.now", return_value=later):
        answer = Client().get(address(workspace, *expired))
        assert (answer.status_code, answer.content) == (404, missing.content)
    assert "This invitation cannot be used" in missing.content.decode()
    assert not User.objects.filter(username="ada").exists()


@pytest.mark.django_db
def test_an_invitation_falls_with_the_right_of_who_sent_it() -> None:
    workspace, owner = make_workspace()
    admin = make_member(workspace, Role.ADMIN)
    assert admin.user is not None
    invitation, secret = make_invitation(workspace, admin, role=Role.OPERATOR)
    with scope.open_workspace(workspace.pk):
        change_member(actor=owner, member=Membership.objects.get(user=admin.user).public_id, role=Role.VIEWER)
        with pytest.raises(Refusal):
            accept_invitation(actor=Actor.of(make_user("bob")), invitation=invitation.pk.hex, secret=secret)
        assert Membership.objects.filter(user__username="bob").count() == 0


@pytest.mark.django_db
def test_an_admin_invites_no_owner() -> None:
    workspace, _ = make_workspace()
    admin = make_member(workspace, Role.ADMIN)
    with scope.open_workspace(workspace.pk), pytest.raises(Refusal, match="which you do not hold"):
        invite(actor=admin, email="ada@example.org", role=Role.OWNER)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"password": "short", "password_again": "short"}, "too short"),
        ({"password": "123456789012345", "password_again": "123456789012345"}, "numeric"),
        ({"password_again": "other"}, "differs"),
        ({"username": "Ada Lovelace"}, "lower-case"),
        ({"username": "lab-owner"}, "taken"),
    ],
)
def test_bad_accounts_are_refused_with_the_input_kept_and_the_link_unused(changed: dict[str, str], words: str) -> None:
    workspace, owner = make_workspace()
    invitation, secret = make_invitation(workspace, owner)
    answer = Client().post(address(workspace, invitation, secret), newcomer(**changed))
    assert answer.status_code in (409, 422)
    assert words in answer.content.decode()
    assert not User.objects.filter(username="ada").exists()
    with scope.open_workspace(workspace.pk):
        assert Invitation.objects.get().accepted_at is None


@pytest.mark.django_db
def test_nothing_else_can_be_set_through_the_form() -> None:
    workspace, owner = make_workspace()
    invitation, secret = make_invitation(workspace, owner)
    more = {"site_roles": "site_operator", "role": "owner", "is_staff": "1", "kind": "service", "email": "x@example.org"}
    assert Client().post(address(workspace, invitation, secret), newcomer() | more).status_code == 303
    ada = User.objects.get(username="ada")
    assert (ada.site_roles, ada.is_staff, ada.kind, ada.email) == ([], False, "person", "ada@example.org")
    assert membership(workspace, ada).role == "researcher"


@pytest.mark.django_db
def test_the_secret_is_shown_once_and_kept_nowhere() -> None:
    workspace, owner = make_workspace()
    client = signed_in(owner)
    made = client.post(
        f"/workspaces/{workspace.slug}/members/add/",
        {"what": "invite", "invite-email": "ada@example.org", "invite-role": "viewer", "invite-days": "3"},
    )
    assert made.status_code == 201
    secret = made.content.decode().split("/invitations/")[1].split("/")[1]
    assert len(secret) == 64
    assert secret not in client.get(f"/workspaces/{workspace.slug}/members/").content.decode()
    with scope.open_workspace(workspace.pk):
        kept = str(list(Invitation.objects.values())) + str(list(EventPayload.objects.values("body")))
    assert secret not in kept


@pytest.mark.django_db(transaction=True)
def test_invitations_to_one_address_sent_at_once_leave_one_that_opens() -> None:
    workspace, owner = make_workspace()
    start = threading.Barrier(4)
    made: list[tuple[Invitation, str]] = []

    def send() -> None:
        try:
            start.wait(10)
            with scope.open_workspace(workspace.pk):
                made.append(invite(actor=owner, email="Ada@example.org", role="viewer"))
        finally:
            connection.close()

    threads = [threading.Thread(target=send) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    answers = [Client().get(address(workspace, invitation, secret)).status_code for invitation, secret in made]
    assert sorted(answers) == [200, 404, 404, 404]
    with scope.open_workspace(workspace.pk):
        last = EventPayload.objects.get(event=AuditEvent.objects.filter(verb="invitation.sent").latest("sequence"))
    assert "revoked_at" in str(last.body["details"]["changed"])


@pytest.mark.django_db(transaction=True)
def test_many_who_accept_at_once_are_one() -> None:
    workspace, owner = make_workspace()
    invitation, secret = make_invitation(workspace, owner)
    start, outcomes = threading.Barrier(6), []

    def accept(number: int) -> None:
        try:
            start.wait(10)
            with scope.open_workspace(workspace.pk):
                accept_as_new_person(
                    invitation=invitation.pk.hex, secret=secret, username=f"ada{number}", display_name="", password=PASSWORD
                )
            outcomes.append("in")
        except Refusal:
            outcomes.append("out")
        finally:
            connection.close()

    threads = [threading.Thread(target=accept, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(outcomes) == ["in"] + ["out"] * 5
    assert User.objects.filter(username__startswith="ada").count() == 1


@pytest.mark.django_db
def test_a_viewer_sees_no_invitations() -> None:
    workspace, owner = make_workspace()
    make_invitation(workspace, owner)
    viewer = make_member(workspace, Role.VIEWER)
    assert "ada@example.org" not in signed_in(viewer).get(f"/workspaces/{workspace.slug}/members/").content.decode()
    assert signed_in(viewer).get(f"/api/v1/workspaces/{workspace.slug}/invitations").status_code == 403
    with scope.open_workspace(workspace.pk):
        assert rights_of(viewer, workspace.pk).may_enter
