"""Who belongs to the workspace, in which role, for which kinds. Nobody grants more than they hold; one owner always stays."""

import uuid
from collections.abc import Sequence

from django.contrib.auth.models import Group
from django.utils import timezone

from workspaces import ids, scope
from workspaces.access import ROLES, Actor, Kind, Permission, Rights, Role, give_role, people_groups, rights_of, take_role
from workspaces.audit import Draft, Refusal, command
from workspaces.commands.user import new_user
from workspaces.models import Membership, Token, User, Workspace
from workspaces.queries.owner import owners_of
from workspaces.site_audit import SiteDraft, SiteVerb, write_site_event
from workspaces.verbs import Verb


@command(Verb.MEMBER_ADDED, needs=Permission.MANAGE_MEMBERS, kind=Kind.MEMBER)
def add_member(
    event: Draft,
    *,
    actor: Actor,
    role: str,
    user: User | None = None,
    group: Group | None = None,
    kinds: Sequence[str] = (),
    id: uuid.UUID | None = None,  # noqa: A002  # the word of the column
) -> Membership:
    """Make a person, a service account or a group of people a member; `kinds` narrows the role to these kinds, empty means all."""
    rights = lock_members(actor)
    check_grant(rights, role, kinds)
    return join(event, role=role, user=user, group=group, kinds=kinds, id=id)


@command(Verb.MEMBER_CHANGED, needs=Permission.MANAGE_MEMBERS, kind=Kind.MEMBER)
def change_member(event: Draft, *, actor: Actor, member: str, role: str, kinds: Sequence[str] = ()) -> Membership:
    """Give a member another role or other kinds. Neither may be more than the actor holds, before and after."""
    rights = lock_members(actor)
    row = _find(member)
    check_grant(rights, row.role, row.kinds)
    check_grant(rights, role, kinds)
    _check_principal(row.user, role, kinds)
    take_role(row)
    event.change(row, role=role, kinds=sorted(kinds))
    give_role(row)
    _check_owner_stays()
    return row


@command(Verb.MEMBER_REMOVED, needs=Permission.MANAGE_MEMBERS, kind=Kind.MEMBER, in_archive="taking a right away never waits")
def remove_member(event: Draft, *, actor: Actor, member: str, reason: str = "") -> None:
    """End a membership. Tokens that its person holds here are revoked unless a group still lets them in."""
    rights = lock_members(actor)
    row = _find(member)
    check_grant(rights, row.role, row.kinds)
    event.reason = reason
    _end(event, row)


@command(Verb.MEMBER_REMOVED, needs=Permission.VIEW, in_archive="taking a right away never waits")
def leave_workspace(event: Draft, *, actor: Actor) -> None:
    """End one's own membership."""
    lock_members(actor)
    row = Membership.objects.filter(user=actor.user).first()
    if row is None:
        raise Refusal("You are here through a group of people; a site operator keeps its members.")
    event.details["left"] = True
    _end(event, row)


@command(Verb.MEMBER_ADDED, needs=Permission.MANAGE_MEMBERS, kind=Kind.MEMBER)
def create_service_account(
    event: Draft, *, actor: Actor, username: str, display_name: str, role: str = Role.RESEARCHER, kinds: Sequence[str] = ()
) -> Membership:
    """Make an account that cannot sign in and holds tokens only, at most a researcher, and let it in here."""
    rights = lock_members(actor)
    check_grant(rights, role, kinds)
    user = new_user(username=username, display_name=display_name, kind=User.Kind.SERVICE)
    write_site_event(SiteDraft(verb=SiteVerb.USER_CREATED, subject=user, details={"kind": user.kind}), actor=actor)
    return join(event, role=role, user=user, kinds=kinds)


# --- Pieces that the commands on members and invitations share ----------------------------------------------------------------------------


def lock_members(actor: Actor) -> Rights:
    """Let one change of members happen at a time, and read the actor's rights as they are under that lock."""
    lock_workspace()
    return rights_of(actor, scope.current_id())


def lock_workspace() -> None:
    Workspace.objects.select_for_update(no_key=True).get(pk=scope.current_id())


def check_grant(rights: Rights, role: str, kinds: Sequence[str]) -> None:
    """Refuse a role, or a breadth of kinds, that whoever holds `rights` does not hold."""
    if role not in ROLES:
        raise Refusal(f"There is no role {role[:40]}; there are {', '.join(ROLES)}.", field="role")
    unknown = sorted(set(kinds) - set(Kind))
    if unknown:
        raise Refusal(f"There is no kind {unknown[0][:40]}; there are {', '.join(Kind)}.", field="kinds")
    for permission in ROLES[role]:
        if permission not in rights.grants:
            raise Refusal(f"The role {role} holds the right “{permission.replace('_', ' ')}”, which you do not hold here.", field="role")
        own = rights.grants[permission]
        if own is not None and not (kinds and own.issuperset(kinds)):
            raise Refusal(f"Your own role is narrowed to {', '.join(sorted(own))}; you can grant no more than that.", field="kinds")


def join(
    event: Draft,
    *,
    role: str,
    user: User | None = None,
    group: Group | None = None,
    kinds: Sequence[str] = (),
    id: uuid.UUID | None = None,  # noqa: A002  # the word of the column
) -> Membership:
    """Write a membership and its grants."""
    if (user is None) == (group is None):
        raise Refusal("Name one person or one group.", field="user")
    if user is not None and not user.is_active:
        raise Refusal(f"{user.label} cannot sign in any more; a site operator can activate the account.", field="user")
    if group is not None and group not in people_groups():
        raise Refusal("There is no such group of people.", field="group")
    known = Membership.objects.filter(user=user, group=group).first()
    if known is not None:
        raise Refusal(f"{known.label} is {known.role} here already; change that instead.", field="user" if user else "group")
    _check_principal(user, role, kinds)
    row = Membership.objects.create(id=id or ids.uuid7(), user=user, group=group, role=role, kinds=sorted(kinds))
    give_role(row)
    event.created(row)
    event.details.update(member=row.label, role=role, kinds=row.kinds)
    return row


def _find(member: str) -> Membership:
    row = Membership.objects.find(member)
    return Membership.objects.select_related("user", "group").get(pk=row.pk)


def _end(event: Draft, row: Membership) -> None:
    event.deleting(row)
    event.details.update(member=row.label, role=row.role)
    take_role(row)
    row.delete()
    _check_owner_stays()
    user = row.user
    if user is not None and not rights_of(Actor.of(user), scope.current_id()).may_enter:
        for token in Token.objects.filter(holder=user, revoked_at=None).select_for_update(no_key=True):
            event.change(token, revoked_at=timezone.now())


def _check_principal(user: User | None, role: str, kinds: Sequence[str]) -> None:
    if user is not None and user.kind != User.Kind.PERSON and not ROLES[role] <= ROLES[Role.RESEARCHER]:
        raise Refusal(f"{user.label} is no person: service accounts and agents are at most researchers.", field="role")
    if role == Role.OWNER and kinds:
        raise Refusal("An owner answers for every kind; narrow another role instead.", field="kinds")


def _check_owner_stays() -> None:
    if not owners_of(scope.current_id()):
        raise Refusal("A workspace keeps at least one owner who can sign in. Make another person owner first.", field="role")
