"""Groups of people: made and filled by site operators, members of workspaces by the commands of commands/member.py."""

from django.contrib.auth.models import Group
from django.db import IntegrityError, transaction

from workspaces.access import Actor, SiteRole, people_groups
from workspaces.audit import Refusal
from workspaces.models import NotFound, User
from workspaces.queries.owner import lock_workspaces, owned_by_group, owners_of
from workspaces.site_audit import SiteDraft, SiteVerb, site_command
from workspaces.text import is_name


@site_command(SiteVerb.GROUP_CREATED, needs=SiteRole.SITE_OPERATOR)
def create_group(event: SiteDraft, *, actor: Actor, name: str) -> Group:
    """Make an empty group of people."""
    name = " ".join(name.split())
    if not 1 <= len(name) <= 120 or not is_name(name):
        raise Refusal("A group's name has 1 to 120 characters, all of which can be printed.", field="name")
    try:
        with transaction.atomic():
            group = Group.objects.create(name=name)
    except IntegrityError as error:
        raise Refusal(f"There is a group named {name} already.", field="name") from error
    if group not in people_groups():
        raise Refusal("Names that begin with “workspace” are kept for the roles of workspaces.", field="name")
    event.about(group)
    return group


@site_command(SiteVerb.GROUP_MEMBER_ADDED, needs=SiteRole.SITE_OPERATOR)
def add_to_group(event: SiteDraft, *, actor: Actor, group: int, username: str) -> Group:
    """Put an account into a group; what the group may do holds for it from the next request on."""
    row, user = find_group(group), find_user(username)
    if user.groups.filter(pk=row.pk).exists():
        raise Refusal(f"{user.label} is in {row.name} already.", field="username")
    user.groups.add(row)
    event.about(row)
    event.details["member"] = user.label
    return row


@site_command(SiteVerb.GROUP_MEMBER_REMOVED, needs=SiteRole.SITE_OPERATOR)
def remove_from_group(event: SiteDraft, *, actor: Actor, group: int, username: str) -> Group:
    """Take an account out of a group; no workspace that the group owns is left without an owner."""
    row, user = find_group(group), find_user(username)
    if not user.groups.filter(pk=row.pk).exists():
        raise Refusal(f"{user.label} is not in {row.name}.", field="username")
    owned = owned_by_group(row)
    lock_workspaces(owned)
    user.groups.remove(row)
    alone = [workspace.name for workspace in owned if not owners_of(workspace.pk)]
    if alone:
        raise Refusal(f"{user.label} is the last person who owns {', '.join(alone[:5])}; have another person made owner there first.")
    event.about(row)
    event.details["member"] = user.label
    return row


def find_group(key: int) -> Group:
    """A group of people by its number; the role groups of workspaces are none."""
    row = next((group for group in people_groups() if group.pk == key), None)
    if row is None:
        raise NotFound("group")
    return row


def find_user(username: str) -> User:
    user = User.objects.filter(username=username).first()
    if user is None:
        raise NotFound("person")
    return user
