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
from workspaces.queries.approval import title_of
from workspaces.queries.member import people
from workspaces.queries.requester import maker_of_token, requesters_of
from workspaces.verbs import Verb

Status = Approval.Status
WEEK = timedelta(days=7)


def ask(
    event: Draft,
    *,
    subject_type: str,
    subject_id: uuid.UUID,
    subject_label: str,
    content: Any,
    reason: str,
    requested_by: User,
    expires_in: timedelta = WEEK,
    content_hash: str = "",
    quorum: int = 1,
    token_id: uuid.UUID | None = None,
) -> Approval:
    """Ask for a decision on `content`, which is JSON as the approver is to see it. `quorum`: how many people must approve.

    `content_hash` is that of the subject where it has one of its own, else the content's. `token_id`: the token that asked, if one did. Whoever
    may decide is told.
    """
    approval = Approval.objects.create(
        subject_type=subject_type[:40],
        subject_id=subject_id,
        subject_label=subject_label[:300],
        content=plain(content),
        content_hash=content_hash or digest(content),
        reason=reason[:1000],
        requested_by=requested_by,
        quorum=max(1, quorum),
        expires_at=timezone.now() + expires_in,
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


def record_vote(event: Draft, *, approval: Approval, person: User, approves: bool, comment: str = "", current_hash: str) -> Status:
    """Record one person's word and return what the request is then; the row of `approval` is locked and brought up to date.

    PENDING: more people must approve. VOID: what was asked has changed since, no vote is kept, and the caller ends the subject. The event's
    verb follows. Refusal: decided already, out of time, own request, second word, no comment to a refusal; then nothing changes.
    """
    approval.refresh_from_db(from_queryset=Approval.objects.select_for_update(no_key=True))
    if approval.status != Status.PENDING:
        raise Refusal(
            f"This request was decided before: {approval.get_status_display()}. The first decision stands.", denied=Permission.APPROVE
        )
    if approval.expires_at <= timezone.now():
        raise Refusal("The time to decide on this is over; it has to be asked for anew.")
    if approval.requested_by_id == person.pk:
        raise Refusal("You asked for this yourself; another approver decides.", denied=Permission.APPROVE)
    if person.pk in requesters_of(approval):
        raise Refusal("It was asked for through a token that you made; another approver decides.", denied=Permission.APPROVE)
    if ApprovalVote.objects.filter(approval=approval, person=person).exists():
        raise Refusal("You have decided on this already; a decision is not taken back.", denied=Permission.APPROVE)
    if not approves and not comment.strip():
        raise Refusal("Say why you refuse; whoever asked will read it.", field="comment")
    if approval.content_hash != current_hash:
        event.verb = Verb.APPROVAL_VOIDED
        event.reason = event.reason or "What was asked has changed since."
        _close(event, approval, Status.VOID)
        return Status.VOID
    vote = ApprovalVote(approval=approval, person=person, approves=approves, comment=comment.strip()[:1000], content_hash=current_hash)
    vote.save(force_insert=True)
    event.verb = Verb.APPROVAL_GIVEN if approves else Verb.APPROVAL_REFUSED
    event.reason = event.reason or vote.comment
    status = Status.REFUSED if not approves else Status.APPROVED if _approvers(approval) >= approval.quorum else Status.PENDING
    if status == Status.PENDING:
        event.changing(approval)
    else:
        _close(event, approval, status)
    event.created(vote)
    return status


def expire(event: Draft, approval: Approval) -> None:
    """End a request that nobody decided in time; nothing happens to one that was decided."""
    _end(event, approval, Status.EXPIRED)


def void(event: Draft, *, subject_type: str, subject_id: uuid.UUID) -> None:
    """End the open requests about a subject that has changed or ended."""
    waiting = Status.PENDING.value
    for approval in kept_query.rows(Approval, subject_type=subject_type, subject_id=subject_id, status=waiting, order_by=("pk",)):
        _end(event, approval, Status.VOID)


def void_all(event: Draft, *, subject_ids: Collection[uuid.UUID]) -> None:
    """End the open requests about any of these subjects, in one look however many they are."""
    for approval in Approval.objects.filter(subject_id__in=subject_ids, status=Status.PENDING).order_by("pk"):
        _end(event, approval, Status.VOID)


def _end(event: Draft, approval: Approval, status: Status) -> None:
    approval.refresh_from_db(from_queryset=Approval.objects.select_for_update(no_key=True))
    if approval.status == Status.PENDING:
        _close(event, approval, status)


def _close(event: Draft, approval: Approval, status: Status) -> None:
    """The one end of a request, however it comes: whoever asked is told, and whoever was asked is called no more."""
    event.change(approval, status=status, decided_at=timezone.now())
    settle_request(subject_id=approval.pk, outcome=status)
    notify(
        [approval.requested_by],
        cause=Notification.Cause.APPROVAL_DECIDED,
        subject_type="approval",
        subject_id=approval.pk,
        label=title_of(approval),
        outcome=status,
        words=event.reason,
    )


def _deciders(approval: Approval, token_id: uuid.UUID | None) -> list[User]:
    """People whose word would count: those with the right, but for whoever asked and whoever made the token that did."""
    asked_by = {approval.requested_by_id, maker_of_token(token_id)}
    may = (person.user for person in people() if person.may(Permission.APPROVE, Kind.APPROVAL))
    return [user for user in may if user.pk not in asked_by]


def _approvers(approval: Approval) -> int:
    """How many people who approved may still approve: who has left since does not count."""
    votes = ApprovalVote.objects.filter(approval=approval, approves=True).select_related("person")
    return sum(rights_of(Actor.of(vote.person), scope.current_id()).allows(Permission.APPROVE, Kind.APPROVAL) for vote in votes)
