"""People, groups and tokens for tests, made by the product's own commands."""

from collections.abc import Sequence

from django.contrib.auth.models import Group
from django.test import Client

from tests.factories import make_user
from workspaces import scope
from workspaces.access import Actor, SiteRole
from workspaces.commands.group import add_to_group, create_group
from workspaces.commands.invitation import invite
from workspaces.commands.token import create_token
from workspaces.models import Invitation, Membership, Token, User, Workspace


def make_operator(username: str = "operator") -> Actor:
    return Actor.of(make_user(username, SiteRole.SITE_OPERATOR))


def make_group(operator: Actor, name: str, *people: User) -> Group:
    group = create_group(actor=operator, name=name)
    for person in people:
        add_to_group(actor=operator, group=group.pk, username=person.username)
    return group


def membership(workspace: Workspace, user: User) -> Membership:
    with scope.open_workspace(workspace.pk):
        return Membership.objects.get(user=user)


def make_token(workspace: Workspace, actor: Actor, *scopes: str, holder: User | None = None) -> tuple[Token, str]:
    with scope.open_workspace(workspace.pk):
        return create_token(actor=actor, name="test", scopes=scopes, days=1, holder=holder)


def make_invitation(
    workspace: Workspace, actor: Actor, *, email: str = "ada@example.org", role: str = "researcher", kinds: Sequence[str] = ()
) -> tuple[Invitation, str]:
    with scope.open_workspace(workspace.pk):
        return invite(actor=actor, email=email, role=role, kinds=kinds)


def signed_in(actor: Actor) -> Client:
    assert actor.user is not None
    client = Client()
    client.force_login(actor.user)
    return client


def bearer(text: str) -> Client:
    return Client(headers={"authorization": f"Bearer {text}"})
