"""Members: nobody grants more than they hold, nobody is left without an owner, kinds narrow and never widen."""

import threading

import pytest
from django.db import connection

from tests.factories import make_member, make_user, make_workspace
from tests.factories_people import make_group, make_operator, make_token, membership
from workspaces import scope
from workspaces.access import Actor, Kind, Permission, Role, rights_of
from workspaces.audit import Denied, Refusal
from workspaces.commands.member import add_member, change_member, create_service_account, leave_workspace, remove_member
from workspaces.models import AuditEvent, Membership, SiteEvent, Token, User, Workspace
from workspaces.verbs import Verb


def rights(workspace: Workspace, actor: Actor, permission: Permission, kind: Kind | None = None) -> bool:
    with scope.open_workspace(workspace.pk):
        return rights_of(actor, workspace.pk).allows(permission, kind)


@pytest.mark.django_db
def test_a_new_member_may_what_the_role_says_and_the_event_names_them() -> None:
    workspace, owner = make_workspace()
    ada = make_user("ada")
    with scope.open_workspace(workspace.pk):
        add_member(actor=owner, user=ada, role=Role.RESEARCHER)
        event = AuditEvent.objects.get(verb=Verb.MEMBER_ADDED)
    assert event.subject_label == "Ada"
    assert rights(workspace, Actor.of(ada), Permission.LAUNCH_RUN)
    assert not rights(workspace, Actor.of(ada), Permission.MANAGE_MEMBERS)


@pytest.mark.django_db
@pytest.mark.parametrize("role", [Role.VIEWER, Role.RESEARCHER, Role.OPERATOR, Role.APPROVER, Role.AUDITOR])
def test_below_admin_nobody_changes_members(role: str) -> None:
    workspace, _ = make_workspace()
    actor, stranger = make_member(workspace, role), make_user("stranger")
    with scope.open_workspace(workspace.pk), pytest.raises(Denied):
        add_member(actor=actor, user=stranger, role=Role.VIEWER)
    assert not rights(workspace, Actor.of(stranger), Permission.VIEW)


@pytest.mark.django_db
def test_an_admin_makes_no_owner_neither_of_others_nor_of_themselves() -> None:
    workspace, _ = make_workspace()
    admin = make_member(workspace, Role.ADMIN)
    assert admin.user is not None
    own = membership(workspace, admin.user)
    with scope.open_workspace(workspace.pk):
        with pytest.raises(Refusal, match="which you do not hold"):
            add_member(actor=admin, user=make_user("ada"), role=Role.OWNER)
        with pytest.raises(Refusal, match="which you do not hold"):
            change_member(actor=admin, member=own.public_id, role=Role.OWNER)
    assert not rights(workspace, admin, Permission.TRANSFER)


@pytest.mark.django_db
def test_an_admin_neither_demotes_nor_removes_an_owner() -> None:
    workspace, owner = make_workspace()
    admin = make_member(workspace, Role.ADMIN)
    assert owner.user is not None
    target = membership(workspace, owner.user).public_id
    with scope.open_workspace(workspace.pk):
        with pytest.raises(Refusal):
            change_member(actor=admin, member=target, role=Role.VIEWER)
        with pytest.raises(Refusal):
            remove_member(actor=admin, member=target)
    assert rights(workspace, owner, Permission.TRANSFER)


@pytest.mark.django_db
def test_a_narrowed_admin_grants_only_inside_their_kinds() -> None:
    workspace, owner = make_workspace()
    ada, bob = make_user("ada"), make_user("bob")
    with scope.open_workspace(workspace.pk):
        add_member(actor=owner, user=ada, role=Role.ADMIN, kinds=["member", "run"])
        narrowed = Actor.of(ada)
        with pytest.raises(Refusal, match="narrowed"):
            add_member(actor=narrowed, user=bob, role=Role.RESEARCHER)
        with pytest.raises(Refusal, match="narrowed"):
            add_member(actor=narrowed, user=bob, role=Role.RESEARCHER, kinds=["run", "dataset"])
        add_member(actor=narrowed, user=bob, role=Role.RESEARCHER, kinds=["run"])
        own = Membership.objects.get(user=ada)
        with pytest.raises(Refusal, match="narrowed"):
            change_member(actor=narrowed, member=own.public_id, role=Role.ADMIN)
    assert rights(workspace, Actor.of(bob), Permission.VIEW, Kind.RUN)
    assert not rights(workspace, Actor.of(bob), Permission.VIEW, Kind.DATASET)


@pytest.mark.django_db
def test_the_last_owner_stays() -> None:
    workspace, owner = make_workspace()
    assert owner.user is not None
    own = membership(workspace, owner.user).public_id
    with scope.open_workspace(workspace.pk):
        for attempt in (
            lambda: leave_workspace(actor=owner),
            lambda: remove_member(actor=owner, member=own),
            lambda: change_member(actor=owner, member=own, role=Role.ADMIN),
        ):
            with pytest.raises(Refusal, match="at least one owner"):
                attempt()
    assert rights(workspace, owner, Permission.TRANSFER)


@pytest.mark.django_db
def test_a_group_can_own_and_lets_the_founder_leave() -> None:
    workspace, owner = make_workspace()
    operator, ada = make_operator(), make_user("ada")
    group = make_group(operator, "Leads", ada)
    with scope.open_workspace(workspace.pk):
        add_member(actor=owner, group=group, role=Role.OWNER)
        leave_workspace(actor=owner)
    assert rights(workspace, Actor.of(ada), Permission.TRANSFER)
    assert not rights(workspace, owner, Permission.VIEW)


@pytest.mark.django_db
def test_an_empty_group_is_no_owner() -> None:
    workspace, owner = make_workspace()
    group = make_group(make_operator(), "Nobody")
    with scope.open_workspace(workspace.pk):
        add_member(actor=owner, group=group, role=Role.OWNER)
        with pytest.raises(Refusal, match="at least one owner"):
            leave_workspace(actor=owner)


@pytest.mark.django_db
def test_a_role_group_of_another_workspace_cannot_be_made_a_member() -> None:
    workspace, owner = make_workspace()
    other, _ = make_workspace("other")
    role_group = make_member(other, Role.ADMIN, "mallory")
    assert role_group.user is not None
    with scope.open_workspace(workspace.pk), pytest.raises(Refusal, match="no such group"):
        add_member(actor=owner, group=role_group.user.groups.get(), role=Role.VIEWER)


@pytest.mark.django_db
def test_a_service_account_is_at_most_a_researcher() -> None:
    workspace, owner = make_workspace()
    with scope.open_workspace(workspace.pk):
        with pytest.raises(Refusal, match="at most researchers"):
            create_service_account(actor=owner, username="bot", display_name="Bot", role=Role.ADMIN)
        member = create_service_account(actor=owner, username="bot", display_name="Bot")
        with pytest.raises(Refusal, match="at most researchers"):
            change_member(actor=owner, member=member.public_id, role=Role.OPERATOR)
    bot = User.objects.get(username="bot")
    assert bot.kind == User.Kind.SERVICE
    assert not bot.has_usable_password()
    assert SiteEvent.objects.filter(verb="user.created", subject_label="Bot").exists()


@pytest.mark.django_db
def test_a_service_account_in_a_group_of_admins_is_a_researcher_all_the_same() -> None:
    workspace, owner = make_workspace()
    bot = make_user("bot", kind=User.Kind.SERVICE)
    group = make_group(make_operator(), "Admins", bot)
    with scope.open_workspace(workspace.pk):
        add_member(actor=owner, group=group, role=Role.ADMIN)
    assert rights(workspace, Actor.of(bot), Permission.LAUNCH_RUN)
    assert not rights(workspace, Actor.of(bot), Permission.MANAGE_MEMBERS)
    assert not rights(workspace, Actor.of(bot), Permission.VIEW_AUDIT)


@pytest.mark.django_db
def test_a_group_that_is_narrowed_narrows_its_people_and_nobody_else() -> None:
    workspace, owner = make_workspace()
    ada, bob = make_user("ada"), make_user("bob")
    group = make_group(make_operator(), "Data people", ada)
    with scope.open_workspace(workspace.pk):
        add_member(actor=owner, group=group, role=Role.RESEARCHER, kinds=["dataset"])
        add_member(actor=owner, user=bob, role=Role.RESEARCHER)
        of_ada, of_bob = (rights_of(Actor.of(user), workspace.pk) for user in (ada, bob))
    assert (of_ada.allows(Permission.EDIT_REGISTRY, Kind.DATASET), of_ada.allows(Permission.EDIT_REGISTRY, Kind.AGENT)) == (True, False)
    assert of_bob.allows(Permission.EDIT_REGISTRY, Kind.AGENT)


@pytest.mark.django_db
def test_removal_revokes_the_tokens_unless_a_group_still_lets_in() -> None:
    workspace, owner = make_workspace()
    operator, ada = make_operator(), make_member(workspace, Role.RESEARCHER, "ada")
    assert ada.user is not None
    group = make_group(operator, "Team", ada.user)
    with scope.open_workspace(workspace.pk):
        add_member(actor=owner, group=group, role=Role.VIEWER)
    token, _ = make_token(workspace, ada, "run:read")
    with scope.open_workspace(workspace.pk):
        remove_member(actor=owner, member=membership_id(ada))
        assert Token.objects.get(pk=token.pk).revoked_at is None
        add_member(actor=owner, user=ada.user, role=Role.RESEARCHER)
        remove_member(actor=owner, member=Membership.objects.get(group=group).public_id)
        remove_member(actor=owner, member=membership_id(ada))
        assert Token.objects.get(pk=token.pk).revoked_at is not None


def membership_id(actor: Actor) -> str:
    return Membership.objects.get(user=actor.user).public_id


@pytest.mark.django_db
@pytest.mark.parametrize(("role", "kinds", "field"), [("emperor", [], "role"), ("viewer", ["gold"], "kinds"), ("owner", ["run"], "kinds")])
def test_unknown_roles_and_kinds_are_refused_at_their_field(role: str, kinds: list[str], field: str) -> None:
    workspace, owner = make_workspace()
    with scope.open_workspace(workspace.pk), pytest.raises(Refusal) as refused:
        add_member(actor=owner, user=make_user("ada"), role=role, kinds=kinds)
    assert refused.value.field == field


@pytest.mark.django_db(transaction=True)
def test_two_owners_who_demote_each_other_at_once_leave_one() -> None:
    workspace, first = make_workspace()
    second = make_member(workspace, Role.OWNER, "second")
    assert first.user is not None
    assert second.user is not None
    targets = {first: membership(workspace, second.user).public_id, second: membership(workspace, first.user).public_id}
    start, outcomes = threading.Barrier(2), []

    def demote(actor: Actor, target: str) -> None:
        try:
            start.wait(10)
            with scope.open_workspace(workspace.pk):
                change_member(actor=actor, member=target, role=Role.VIEWER)
            outcomes.append("done")
        except (Refusal, Denied) as no:
            outcomes.append(type(no).__name__)
        finally:
            connection.close()

    threads = [threading.Thread(target=demote, args=pair) for pair in targets.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert outcomes.count("done") == 1
    assert sum(rights(workspace, actor, Permission.TRANSFER) for actor in (first, second)) == 1


@pytest.mark.django_db(transaction=True)
def test_two_owners_who_leave_at_once_leave_one() -> None:
    workspace, first = make_workspace()
    second = make_member(workspace, Role.OWNER, "second")
    start, outcomes = threading.Barrier(2), []

    def leave(actor: Actor) -> None:
        try:
            start.wait(10)
            with scope.open_workspace(workspace.pk):
                leave_workspace(actor=actor)
            outcomes.append("left")
        except Refusal:
            outcomes.append("stayed")
        finally:
            connection.close()

    threads = [threading.Thread(target=leave, args=(actor,)) for actor in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(outcomes) == ["left", "stayed"]
