"""Arranging by the product's own commands, so that a test never starts from a state that labsite could not reach."""

from typing import Any

from workspaces import scope
from workspaces.access import Actor, Role
from workspaces.commands.member import add_member
from workspaces.commands.workspace import create_workspace
from workspaces.models import Membership, User, Workspace


def make_user(username: str, *site_roles: str, kind: str = User.Kind.PERSON) -> User:
    return User.objects.create_user(username=username, password=None, display_name=username.title(), site_roles=list(site_roles), kind=kind)


def make_workspace(slug: str = "lab", *, owner: User | None = None, **settled: Any) -> tuple[Workspace, Actor]:
    """A workspace that is still being set up, and its owner as actor. Opens and closes its scope itself."""
    owner = owner or make_user(f"{slug}-owner", User.SiteRole.CREATE_WORKSPACE)
    actor = Actor.of(owner)
    return create_workspace(actor=actor, slug=slug, name=slug.title(), owners=[owner], **settled), actor


def make_member(workspace: Workspace, role: str, username: str = "") -> Actor:
    """A new person whom an owner lets in with a role, as actor. Opens and closes the scope itself."""
    user = make_user(username or f"{role}-{workspace.slug}")
    with scope.open_workspace(workspace.pk):
        owner = Membership.objects.select_related("user").filter(role=Role.OWNER, user__isnull=False).earliest("created_at").user
        assert owner is not None
        add_member(actor=Actor.of(owner), role=role, user=user)
    return Actor.of(user)


__all__ = ["Role", "scope"]
