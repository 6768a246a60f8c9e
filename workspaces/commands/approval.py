"""Asking for a person's decision and recording it: pieces of the commands whose subject is decided (a launch, later a policy, a promotion).

What is asked is frozen with its hash. A vote counts only for exactly that: the deciding command hands in the hash of what would happen now.
"""

import uuid
from collections.abc import Collection
from datetime import timedelta
from typing import Any

from django.utils import timezone

from workspaces import kept_query, scope
from workspaces.access import Actor, Kind, Permission, rights_of
from workspaces.audit import Draft, Refusal
from workspaces.canonical import digest, plain
from workspaces.commands.notification import notify, settle_request
from workspaces.models import Approval, ApprovalVote, Notification, User
from workspaces.queries.approval import changed_since, title_of
from workspaces.queries.approval_rule import STRICTNESS, reaches, rule_of
from workspaces.queries.decider import approvers_of, delegations_at, why_not, why_not_alone
from workspaces.queries.member import people
from workspaces.queries.requester import maker_of_token
from workspaces.verbs import Verb

Status = Approval.Status
ENDED = {
    Status.EXPIRED: "Nobody decided on it in time.",
    Status.VOID: "What was asked ended, or something else was asked for in its place.",
}


def taken_up(approval: Approval, *, actor: Actor, seen_hash: str) -> tuple[Approval, User]:
    """The request, locked, and the person who is about to decide on it. Raises Refusal where that is no person, or has seen
    another content than it has."""
    asked = Approval.objects.select_for_update(no_key=True).get(pk=approval.pk)
    if actor.user is None:
        raise Refusal("Only a person decides.")
    if seen_hash != asked.content_hash:
        raise Refusal("What is asked has changed since you looked; read it again before deciding.")
    return asked, actor.user


def demand_still(person: User, permission: Permission, kind: Kind, doing: str) -> None:
    """Whoever asked may still do it: an approval lets somebody go on, and gives nobody a right. Raises Refusal."""
    if not rights_of(Actor.of(person), scope.current_id()).allows(permission, kind):
        raise Refusal(f"{person.label} may no longer {doing} here. Refuse the request, or give the right back first.")


def ask(
    event: Draft,
    *,
    subject_type: str,
    subject_id: uuid.UUID,
    subject_label: str,
    content: Any,
    reason: str,
    requested_by: User,
    expires_in: timedelta | None = None,
    content_hash: str = "",
    quorum: int | None = None,
    at_least: int = 1,
    role: str = "",
    token_id: uuid.UUID | None = None,
) -> Approval:
    """Ask for a decision on `content`, which is JSON as the approver is to see it. Whoever may decide is told.

    How many must approve, of which role, and for how long it waits says the workspace's rule for the kind, unless the caller does: `quorum` is
    how many, whatever the rule; `at_least` and a `role` make it stricter at most. The caller holds the ledger's lock, so that a rule
    that is tightened meanwhile binds this request too.
    `content_hash` is that of the subject where it has one of its own, else the content's. `token_id`: the token that asked, if one did.
    """
    rule = rule_of(subject_type)
    least = max(rule.role, role or rule.role, key=lambda one: STRICTNESS[Approval.Role(one)])
    approval = Approval.objects.create(
        subject_type=subject_type[:40],
        subject_id=subject_id,
        subject_label=subject_label[:300],
        content=plain(content),
        content_hash=content_hash or digest(content),
        reason=reason[:1000],
        requested_by=requested_by,
        quorum=max(rule.approvers, at_least) if quorum is None else quorum,
        role=least,
        expires_at=timezone.now() + (timedelta(hours=rule.hours) if expires_in is None else expires_in),
    )
    event.created(approval)
    notify(
        _deciders(approval, token_id),
        cause=Notification.Cause.APPROVAL_ASKED,
        subject_type="approval",
        subject_id=approval.pk,
        label=title_of(approval),
        outcome=approval.status,
        words=reason,
    )
    return approval


def record_vote(
    event: Draft,
    *,
    approval: Approval,
    actor: Actor,
    approves: bool,
    comment: str = "",
    current_hash: str,
    content_now: Any = None,
    is_alone: bool = False,
    answer: str = "",
) -> Status:
    """Record one person's word and return what the request is then; the row of `approval` is locked and brought up to date.

    PENDING: more people must approve. VOID: what was asked has changed since, no vote is kept, and the caller ends the subject; `content_now` is
    what would be asked now, for the words about it. `is_alone`: an owner breaks the glass (feature 76). The event's verb follows. Refusal:
    decided already, out of time, own request, second word, no comment to a refusal, not of the role; then nothing changes.
    """
    approval.refresh_from_db(from_queryset=Approval.objects.select_for_update(no_key=True))
    if actor.user is None:
        raise Refusal("Only a person decides.")
    if approval.status != Status.PENDING:
        raise Refusal(
            f"This request was decided before: {approval.get_status_display()}. The first decision stands.", denied=Permission.APPROVE
        )
    if approval.expires_at <= timezone.now():
        raise Refusal("The time to decide on this is over; it has to be asked for anew.")
    if not approves and not comment.strip():
        raise Refusal("Say why you refuse; whoever asked will read it.", field="comment")
    if is_alone:
        check_alone(approval, actor, approves=approves, reason=comment)
    else:
        check_word(approval, actor, approves=approves)
    changed = changed_since(approval, current_hash, content_now)
    if changed is not None:
        event.verb = Verb.APPROVAL_VOIDED
        event.reason = " ".join(["What was asked has changed since.", *changed])[:1000]
        _close(event, approval, Status.VOID, event.reason)
        return Status.VOID
    vote = ApprovalVote(
        approval=approval,
        person=actor.user,
        approves=approves,
        comment=comment.strip()[:1000],
        answer=answer[:1000],
        content_hash=current_hash,
        behalf=_giver(actor),
        is_alone=is_alone,
    )
    vote.save(force_insert=True)
    event.verb = Verb.APPROVAL_FORCED if is_alone else Verb.APPROVAL_GIVEN if approves else Verb.APPROVAL_REFUSED
    event.reason = event.reason or vote.comment
    is_enough = is_alone or approvers_of(approval) >= approval.quorum
    status = Status.REFUSED if not approves else Status.APPROVED if is_enough else Status.PENDING
    if status == Status.PENDING:
        event.changing(approval)
    else:
        _close(event, approval, status)
    event.created(vote)
    if is_alone:
        _tell_of_alone(event, approval, actor.user)
    return status


def check_word(approval: Approval, actor: Actor, *, approves: bool) -> None:
    """Raise Refusal where this person's word does not count, in whoever's name it is. Anyone who may approve can refuse; an approval counts only
    from the role that the request demands."""
    why = why_not(approval, actor, rights_of(actor, scope.current_id()), approves=approves)
    if why:
        raise Refusal(why, denied=Permission.APPROVE)


def check_alone(approval: Approval, actor: Actor, *, approves: bool, reason: str) -> None:
    """Break-glass: only an owner, signed in and in no other's name, with a reason, and only where an ordinary approval would not do."""
    why = why_not_alone(approval, actor, rights_of(actor, scope.current_id()))
    if why:
        raise Refusal(why, denied=Permission.APPROVE)
    if not approves:
        raise Refusal("Refusing needs nobody else; refuse it as usual.")
    if not reason.strip():
        raise Refusal("Say why it cannot wait for the others; all who may approve will read it.", field="comment")


def expire(event: Draft, approval: Approval) -> None:
    """End a request that nobody decided in time; nothing happens to one that was decided."""
    _end(event, approval, Status.EXPIRED)


def void(event: Draft, *, subject_type: str, subject_id: uuid.UUID, reason: str = "") -> None:
    """End the open requests about a subject that has changed or ended; `reason` says why where the event's own is another."""
    [found] = kept_query.ask_together([open_requests(subject_type=subject_type, subject_id=subject_id)])
    for approval in found:
        _end(event, approval, Status.VOID, reason)


def open_requests(*, subject_type: str, subject_id: uuid.UUID) -> kept_query.Question:
    """What `void` asks, for one who asks for more in the same round trip."""
    return kept_query.question(
        Approval, subject_type=subject_type, subject_id=subject_id, status=Status.PENDING.value, order_by=("pk",)
    )  # fmt: skip


def void_all(event: Draft, *, subject_ids: Collection[uuid.UUID]) -> None:
    """End the open requests about any of these subjects, in one look however many they are."""
    for approval in Approval.objects.filter(subject_id__in=subject_ids, status=Status.PENDING).order_by("pk"):
        _end(event, approval, Status.VOID)


def withdraw(event: Draft, approval: Approval, reason: str) -> None:
    """End a request that is asked for no more; nothing happens to one that was decided."""
    _end(event, approval, Status.WITHDRAWN, reason)


def _end(event: Draft, approval: Approval, status: Status, reason: str = "") -> None:
    approval.refresh_from_db(from_queryset=Approval.objects.select_for_update(no_key=True))
    if approval.status == Status.PENDING:
        _close(event, approval, status, reason or event.reason or ENDED.get(status, ""))


def _close(event: Draft, approval: Approval, status: Status, reason: str = "") -> None:
    """The one end of a request, however it comes: whoever asked is told, and whoever was asked is called no more."""
    event.change(approval, status=status, decided_at=timezone.now(), end_reason=reason[:1000])
    settle_request(subject_id=approval.pk, outcome=status)
    notify(
        [approval.requested_by],
        cause=Notification.Cause.APPROVAL_DECIDED,
        subject_type="approval",
        subject_id=approval.pk,
        label=title_of(approval),
        outcome=status,
        words=reason or event.reason,
    )


def _tell_of_alone(event: Draft, approval: Approval, owner: User) -> None:
    """Everyone who may approve is told, whoever asked too: it never happens silently."""
    event.details["break_glass"] = f"{owner.label} decided alone."
    may = [person.user for person in people() if person.may(Permission.APPROVE, Kind.APPROVAL)]
    notify(
        {user.pk: user for user in [*may, approval.requested_by] if user.pk != owner.pk}.values(),
        cause=Notification.Cause.APPROVAL_FORCED,
        subject_type="approval",
        subject_id=approval.pk,
        label=title_of(approval),
        outcome=approval.status,
        words=f"{owner.label}: {event.reason}",
    )


def _deciders(approval: Approval, token_id: uuid.UUID | None) -> list[User]:
    """People whose word would count: those with the right and the role, and whom they named while away; but for whoever asked and whoever made the
    token that did."""
    asked_by = {approval.requested_by_id, maker_of_token(token_id)}
    everyone = {person.user.pk: person for person in people()}
    may = [person for person in everyone.values() if reaches(person.may, approval.role) and person.user.pk not in asked_by]
    standing = delegations_at(timezone.now()).filter(giver__in=[person.user.pk for person in may]).values_list("delegate", flat=True)
    named = [everyone[key] for key in set(standing) if key in everyone]
    return [user for key, user in {person.user.pk: person.user for person in [*may, *named]}.items() if key not in asked_by]


def _giver(actor: Actor) -> User | None:
    return actor.behalf if actor.delegation_id is not None else None
