"""Groups of people: principals like persons, kept by site operators, never a way around the last owner."""

import re

import pytest

from tests.factories import make_user, make_workspace
from tests.factories_people import make_group, make_operator, signed_in
from workspaces import scope
from workspaces.access import Actor, Kind, Permission, Role, rights_of
from workspaces.audit import Denied, Refusal
from workspaces.commands.group import add_to_group, create_group, remove_from_group
from workspaces.commands.member import add_member, leave_workspace
from workspaces.commands.user import deactivate_user
from workspaces.models import NotFound, SiteEvent
from workspaces.queries.member import people


@pytest.mark.django_db
def test_only_site_operators_keep_groups() -> None:
    _, owner = make_workspace()
    with pytest.raises(Denied):
        create_group(actor=owner, name="Mine")
    group = make_group(make_operator(), "Team")
    with pytest.raises(Denied):
        add_to_group(actor=owner, group=group.pk, username="lab-owner")
    assert SiteEvent.objects.filter(verb="group.created", subject_label="Team").count() == 1


@pytest.mark.django_db
@pytest.mark.parametrize("name", ["", "  ", "x" * 121, "workspace 0123 owner", "a\x00b"])
def test_names_that_are_none_or_kept_are_refused(name: str) -> None:
    with pytest.raises(Refusal):
        create_group(actor=make_operator(), name=name)


@pytest.mark.django_db
def test_a_role_group_of_a_workspace_is_no_group_of_people() -> None:
    _, owner = make_workspace()
    assert owner.user is not None
    role_group = owner.user.groups.get()
    with pytest.raises(NotFound):
        add_to_group(actor=make_operator(), group=role_group.pk, username="operator")


@pytest.mark.django_db
def test_rights_through_groups_add_up_and_stay_narrowed() -> None:
    workspace, owner = make_workspace()
    operator, ada = make_operator(), make_user("ada")
    runs, data = make_group(operator, "Runs", ada), make_group(operator, "Data", ada)
    with scope.open_workspace(workspace.pk):
        add_member(actor=owner, group=runs, role=Role.RESEARCHER, kinds=["run"])
        add_member(actor=owner, group=data, role=Role.VIEWER, kinds=["dataset"])
        rights = rights_of(Actor.of(ada), workspace.pk)
        everyone = people()
        assert [person for one in everyone for person in people({one.user.pk})] == everyone, "asked one by one, each is who they are"
    assert rights.allows(Permission.LAUNCH_RUN, Kind.RUN)
    assert rights.allows(Permission.VIEW, Kind.DATASET)
    assert not rights.allows(Permission.IMPORT_DATA, Kind.DATASET)
    assert not rights.allows(Permission.VIEW, Kind.MEMBER)


@pytest.mark.django_db
def test_the_last_owner_through_a_group_neither_leaves_it_nor_is_deactivated() -> None:
    workspace, owner = make_workspace()
    operator, ada = make_operator(), make_user("ada")
    group = make_group(operator, "Leads", ada)
    with scope.open_workspace(workspace.pk):
        add_member(actor=owner, group=group, role=Role.OWNER)
        leave_workspace(actor=owner)
    with pytest.raises(Refusal, match="last person who owns Lab"):
        remove_from_group(actor=operator, group=group.pk, username="ada")
    with pytest.raises(Refusal, match="only owner of Lab"):
        deactivate_user(actor=operator, username="ada")
    ada.refresh_from_db()
    assert ada.is_active
    assert ada.groups.filter(pk=group.pk).exists()
    add_to_group(actor=operator, group=group.pk, username="lab-owner")
    remove_from_group(actor=operator, group=group.pk, username="ada")


@pytest.mark.django_db
def test_the_members_page_says_how_each_came_by_it() -> None:
    workspace, owner = make_workspace()
    group = make_group(make_operator(), "Team Röntgen", make_user("ada"))
    with scope.open_workspace(workspace.pk):
        add_member(actor=owner, group=group, role=Role.RESEARCHER, kinds=["run"])
    page = signed_in(owner).get("/workspaces/lab/members/").content.decode()
    assert "through the group Team Röntgen" in page
    assert "only run" in page
    assert "launch run: only for run" in page
    assert "transfer: yes" in page


@pytest.mark.django_db
def test_the_members_page_names_who_can_create_administer_archive_and_transfer() -> None:
    workspace, owner = make_workspace()
    make_user("maker", "create_workspace")
    admin, ada = make_user("adam"), make_user("ada")
    leads = make_group(make_operator(), "Leads", ada)
    with scope.open_workspace(workspace.pk):
        add_member(actor=owner, user=admin, role=Role.ADMIN)
        add_member(actor=owner, user=make_user("rita"), role=Role.RESEARCHER)
        add_member(actor=owner, group=leads, role=Role.OWNER)
    page = signed_in(owner).get("/workspaces/lab/members/").content.decode()
    card = page[page.index("Who can …") :]
    card = card[: card.index("</dl>")]
    told = [" ".join(re.sub(r"<[^>]+>", " ", line).split()) for line in re.split(r"<dt>", card)[1:]]
    assert told == [
        "create workspaces in this installation Lab-Owner, Maker",
        "administer it: settings, members, budgets Ada, Adam, Lab-Owner",
        "archive it Ada, Adam, Lab-Owner",
        "transfer or delete it Ada, Lab-Owner",
    ]
