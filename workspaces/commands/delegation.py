"""Letting another decide while one is away, and taking that back."""

from dataclasses import replace
from datetime import datetime, timedelta

from django.utils import timezone

from workspaces import scope
from workspaces.access import Actor, Kind, Permission, may_hold, rights_of
from workspaces.audit import Denied, Draft, Refusal, command
from workspaces.models import Delegation, NotFound, User
from workspaces.queries.member import people
from workspaces.verbs import Verb

LONGEST = timedelta(days=366)


@command(Verb.DELEGATION_GIVEN, needs=Permission.APPROVE, kind=Kind.APPROVAL)
def delegate(event: Draft, *, actor: Actor, username: str, starts_at: datetime, ends_at: datetime, reason: str = "") -> Delegation:
    """Let a member decide on requests in one's own name from one instant to another. It hands on no more than one holds at the moment of use, and
    cannot be handed on further. A request of one's own, or of the other's, it does not reach."""
    giver = actor.user
    if giver is None or actor.token_id is not None or actor.delegation_id is not None:
        raise Refusal("Only a signed-in person says who decides for them.")
    named = next((person.user for person in people() if person.user.username == username.strip()), None)
    if named is None:
        raise Refusal(f"No member is called {username.strip()[:100]}.", field="username")
    if named.pk == giver.pk:
        raise Refusal("You decide for yourself without this; name somebody else.", field="username")
    if not may_hold(named, Permission.APPROVE):
        raise Refusal("Only a person decides, not a service or an agent.", field="username")
    if ends_at <= starts_at:
        raise Refusal("It ends after it begins.", field="ends_at")
    if ends_at <= timezone.now():
        raise Refusal("That time is over already.", field="ends_at")
    if ends_at - starts_at > LONGEST:
        raise Refusal("A year at most; whoever is away for longer gives the role away.", field="ends_at")
    open_ones = Delegation.objects.filter(giver=giver, ended_at=None, starts_at__lt=ends_at, ends_at__gt=starts_at)
    if open_ones.exists():
        raise Refusal("Somebody decides for you in that time already; end that first.", field="starts_at")
    row = Delegation.objects.create(giver=giver, delegate=named, starts_at=starts_at, ends_at=ends_at, reason=reason.strip()[:1000])
    event.created(row)
    event.reason = row.reason
    return row


@command(Verb.DELEGATION_ENDED, needs=Permission.VIEW, kind=Kind.APPROVAL, in_archive="taking a right away never waits")
def end_delegation(event: Draft, *, actor: Actor, delegation: Delegation) -> Delegation:
    """Take it back before its end: whoever gave it, whoever holds it, or who manages members. What was decided by it stands."""
    row = Delegation.objects.select_for_update(no_key=True, of=("self",)).select_related("giver", "delegate").get(pk=delegation.pk)
    rights = rights_of(actor, scope.current_id())
    if not rights.may_write(Kind.APPROVAL):
        raise Denied(Permission.APPROVE, Kind.APPROVAL)
    manages = rights.allows(Permission.MANAGE_MEMBERS, Kind.APPROVAL)
    if not (actor.is_user(row.giver_id) or actor.is_user(row.delegate_id) or manages):
        raise NotFound("delegation")
    if row.ended_at is not None or row.ends_at <= timezone.now():
        raise Refusal("It has ended already.")
    event.change(row, ended_at=timezone.now())
    return row


def in_the_name_of(actor: Actor, delegation: Delegation) -> Actor:
    """The same person, acting by this delegation; whether it stands is asked where a right is used. Raises NotFound where it is another's."""
    if not actor.is_user(delegation.delegate_id):
        raise NotFound("delegation")
    giver: User = delegation.giver
    return replace(actor, behalf=giver, delegation_id=delegation.pk)
