"""Who may decide on a request at this moment, in their own name or in that of somebody who is away, and why not. Asked for pages and by the vote."""

from datetime import datetime
from typing import Any

from django.db.models import Q, QuerySet

from workspaces import scope
from workspaces.access import Actor, Kind, Permission, Rights, rights_of, standing_delegation
from workspaces.models import Approval, ApprovalVote, Delegation, User
from workspaces.queries.approval_rule import reaches
from workspaces.queries.requester import requesters_of

Role = Approval.Role
ROLE_WORDS = {Role.ADMIN: "an admin or owner", Role.OWNER: "an owner"}
FALLEN = "You do not decide in their name: the time is over or not come, it was taken back, or whoever named you may not decide any more."
NEEDS = "Deciding on this needs the right to approve."


def why_not(approval: Approval, actor: Actor, rights: Rights, *, approves: bool = True) -> str:
    """Why this actor's word on an open request does not count; empty where it does."""
    user = actor.user
    if user is None or not rights.allows(Permission.APPROVE, Kind.APPROVAL):
        return NEEDS
    asked_by = requesters_of(approval)
    if user.pk == approval.requested_by_id:
        return "You asked for this yourself; another approver decides."
    if user.pk in asked_by:
        return "It was asked for through a token that you made; another approver decides."
    voice, voice_rights = user, rights
    if actor.delegation_id is not None:
        delegation = standing_delegation(actor)
        if delegation is None:
            return FALLEN
        voice, voice_rights = delegation.giver, rights_of(Actor.of(delegation.giver), scope.current_id())
        if voice.pk in asked_by:
            return f"{voice.label} asked for this; nobody decides on it in their name."
    votes = ApprovalVote.objects.filter(Q(person__in=[user, voice]) | Q(behalf__in=[user, voice]), approval=approval)
    for vote in votes.select_related("person"):
        if vote.person_id == user.pk:
            return "You have decided on this already; a decision is not taken back."
        if vote.behalf_id == user.pk:
            return f"{vote.person.label} has decided on this for you."
        return f"{voice.label} has decided on this already."
    if approves and not reaches(voice_rights.allows, approval.role):
        return f"An approval of this counts only from {ROLE_WORDS[Role(approval.role)]}. You can refuse it, or ask."
    return ""


def why_not_alone(approval: Approval, actor: Actor, rights: Rights) -> str:
    """Why this actor cannot break the glass; empty where they can."""
    if actor.user is None or not reaches(rights.allows, Role.OWNER):
        return "Only an owner decides alone on what needs others."
    if actor.token_id is not None or actor.delegation_id is not None:
        return "Deciding alone wants the owner, signed in: not a token, and nobody in another's name."
    if ApprovalVote.objects.filter(approval=approval, person=actor.user, is_alone=True).exists():
        return "You have decided on this alone already."
    if approvers_of(approval) + 1 >= approval.quorum and not why_not(approval, actor, rights):
        return "Your approval as usual is enough; there is nothing to break."
    return ""


def approvers_of(approval: Approval) -> int:
    """How many approvals count at this moment: for exactly this content, from people who hold the role still. Who has left counts no more, and what
    was said in their name neither."""
    votes = ApprovalVote.objects.filter(approval=approval, approves=True, content_hash=approval.content_hash)
    return sum(_counts(vote, approval.role) for vote in votes.select_related("person", "behalf"))


def _counts(vote: ApprovalVote, role: str) -> bool:
    here = scope.current_id()
    if vote.behalf is not None and not rights_of(Actor.of(vote.person), here).may_enter:
        return False
    return reaches(rights_of(Actor.of(vote.behalf or vote.person), here).allows, role)


def delegations_at(now: Any) -> "QuerySet[Delegation]":
    return Delegation.objects.filter(ended_at=None, starts_at__lte=now, ends_at__gt=now)


def delegated_to(user: User, now: datetime) -> list[Delegation]:
    """Delegations by which this person decides for others just now; whether each still carries is asked at its use."""
    return list(delegations_at(now).filter(delegate=user).select_related("giver", "delegate").order_by("created_at", "pk"))
