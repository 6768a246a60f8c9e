"""Invitations: a link that works once, for a time, for one address, with one role."""

import uuid
from collections.abc import Sequence
from datetime import timedelta

from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.utils import timezone

from workspaces import ids, scope
from workspaces.access import Actor, Kind, Permission, rights_of
from workspaces.audit import Draft, Refusal, command
from workspaces.commands.member import check_grant, join, lock_members, lock_workspace
from workspaces.commands.user import new_user
from workspaces.models import ActorKind, Invitation, Membership, User
from workspaces.queries.invitation import usable
from workspaces.queries.token import fresh_secret, hash_secret
from workspaces.site_audit import SiteDraft, SiteVerb, write_site_event
from workspaces.verbs import Verb

MAX_DAYS = 30


class InvitationGone(Refusal):
    """The link opens nothing (any more); which of the reasons holds is not told to strangers."""


@command(Verb.INVITATION_SENT, needs=Permission.MANAGE_MEMBERS, kind=Kind.MEMBER)
def invite(
    event: Draft, *, actor: Actor, email: str, role: str, kinds: Sequence[str] = (), days: int = 7, invitation_id: uuid.UUID | None = None
) -> tuple[Invitation, str]:
    """Make an invitation; its secret is returned, to be shown once, and kept nowhere. It takes the place of an open one to the same address."""
    rights = lock_members(actor)
    check_grant(rights, role, kinds)
    assert actor.user is not None
    email = email.strip().lower()
    try:
        validate_email(email)
    except ValidationError as error:
        raise Refusal(*error.messages, field="email") from error
    if len(email) > 254:
        raise Refusal("An e-mail address has at most 254 characters.", field="email")
    if not 1 <= days <= MAX_DAYS:
        raise Refusal(f"An invitation lasts 1 to {MAX_DAYS} days.", field="days")
    if Membership.objects.filter(user__email__iexact=email).exists():
        raise Refusal(f"{email} belongs to a member already; change their role instead.", field="email")
    now = timezone.now()
    opened = Invitation.objects.filter(email=email, accepted_at=None, revoked_at=None, expires_at__gt=now)
    for older in opened.select_for_update(no_key=True):
        event.change(older, revoked_at=now)
    secret = fresh_secret()
    row = Invitation.objects.create(
        id=invitation_id or ids.uuid7(),
        email=email,
        role=role,
        kinds=sorted(kinds),
        secret_hash=hash_secret(secret),
        invited_by=actor.user,
        expires_at=now + timedelta(days=days),
    )
    event.created(row)
    event.details.update(email=email, role=role, kinds=row.kinds)
    return row, secret


@command(Verb.INVITATION_REVOKED, needs=Permission.MANAGE_MEMBERS, kind=Kind.MEMBER, in_archive="taking a right away never waits")
def revoke_invitation(event: Draft, *, actor: Actor, invitation: str) -> Invitation:
    """End an invitation that nobody has accepted yet."""
    row = Invitation.objects.select_for_update(no_key=True).get(pk=Invitation.objects.find(invitation).pk)
    if row.accepted_at is not None:
        raise Refusal(f"{row.email} has accepted already; remove the member instead.")
    if row.revoked_at is not None:
        raise Refusal(f"The invitation for {row.email} is revoked already.")
    event.change(row, revoked_at=timezone.now())
    return row


@command(Verb.INVITATION_ACCEPTED, needs=None, public_reason="the secret in the link, checked under the invitation's lock")
def accept_invitation(event: Draft, *, actor: Actor, invitation: str, secret: str) -> Membership:
    """Become a member by an invitation's link, as the person who is signed in."""
    if actor.user is None or actor.user.kind != User.Kind.PERSON or actor.token_id is not None:
        raise Refusal("An invitation is accepted by a person who has signed in.")
    lock_workspace()
    row = _take(event, invitation, secret, actor.user)
    if actor.user.email and actor.user.email.lower() != row.email:
        raise Refusal(
            f"This invitation is for {row.email}, and you are signed in as {actor.user.label} ({actor.user.email}). Sign out to use it."
        )
    return join(event, role=row.role, user=actor.user, kinds=row.kinds)


def accept_as_new_person(*, invitation: str, secret: str, username: str, display_name: str, password: str, request_id: str = "") -> User:
    """Make an account with the invitation's address and become a member, in one step."""
    newcomer = User(username=username[:150], display_name=display_name.strip()[:200] or username[:150])
    actor = Actor(kind=ActorKind.PERSON, user=newcomer, label=newcomer.label[:120], request_id=request_id)
    return _accept_as_new_person(actor=actor, invitation=invitation, secret=secret, newcomer=newcomer, password=password)


@command(Verb.INVITATION_ACCEPTED, needs=None, public_reason="the secret in the link, checked under the invitation's lock")
def _accept_as_new_person(event: Draft, *, actor: Actor, invitation: str, secret: str, newcomer: User, password: str) -> User:
    lock_workspace()
    found = usable(invitation, secret)
    if found is None:
        raise InvitationGone("This invitation cannot be used.")
    user = new_user(username=newcomer.username, display_name=newcomer.display_name, email=found.email, password=password, key=newcomer.pk)
    row = _take(event, invitation, secret, user)
    write_site_event(SiteDraft(verb=SiteVerb.USER_INVITED_IN, subject=user), actor=actor)
    join(event, role=row.role, user=user, kinds=row.kinds)
    event.details["account"] = user.username
    return user


def _take(event: Draft, invitation: str, secret: str, user: User) -> Invitation:
    """Use the invitation up. Whoever invited must still be able to grant what it grants."""
    row = usable(invitation, secret, lock=True)
    if row is None:
        raise InvitationGone("This invitation cannot be used.")
    try:
        check_grant(rights_of(Actor.of(row.invited_by), scope.current_id()), row.role, row.kinds)
    except Refusal as refusal:
        raise InvitationGone("This invitation cannot be used.") from refusal
    event.change(row, accepted_at=timezone.now(), accepted_by=user)
    return row
