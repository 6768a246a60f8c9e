"""A workspace with limits, and tiny commands around single ledger operations, for the tests of resources and decisions."""

import uuid
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from workspaces import ledger
from workspaces.access import Actor, Kind, Permission, Role, give_role, take_role
from workspaces.audit import Draft, command
from workspaces.commands import approval as approval_command
from workspaces.models import Approval, LedgerAccount, Membership, User
from workspaces.verbs import Verb


@command(Verb.MEMBER_ADDED, needs=Permission.MANAGE_MEMBERS, kind=Kind.MEMBER)
def add_member(event: Draft, *, actor: Actor, user: User, role: str) -> Membership:
    member = Membership.objects.create(user=user, role=role)
    give_role(member)
    event.created(member)
    return member


def join(owner: Actor, username: str, role: str = Role.RESEARCHER) -> Actor:
    """A new person with a role in the workspace whose scope is open."""
    user = User.objects.create_user(username=username, password=None, display_name=username.title())
    add_member(actor=owner, user=user, role=role)
    return Actor.of(user)


@command(Verb.LAUNCH_ADMITTED, needs=Permission.LAUNCH_RUN, kind=Kind.RUN)
def reserve(event: Draft, *, actor: Actor, unit: str, amount: int, run_id: uuid.UUID, now: datetime) -> datetime:
    return ledger.reserve(event, unit=unit, amount=amount, run_id=run_id, run_label="a run", now=now)


@command(Verb.RUN_ENDED, needs=Permission.LAUNCH_RUN, kind=Kind.RUN)
def settle(event: Draft, /, *, actor: Actor, **values: Any) -> int:
    return ledger.settle(event, run_label="a run", **values)


@command(Verb.ATTEMPT_STARTED, needs=Permission.LAUNCH_RUN, kind=Kind.RUN)
def move(event: Draft, /, *, actor: Actor, **values: Any) -> ledger.Carried:
    return ledger.move(event, run_label="a run", **values)


@command(Verb.RUN_ENDED, needs=Permission.LAUNCH_RUN, kind=Kind.RUN)
def spoil_balance(event: Draft, *, actor: Actor) -> None:
    """What a defect in some command would leave: a balance without its entry."""
    account = LedgerAccount.objects.get(side=LedgerAccount.Side.SPENT)
    event.change(account, balance=account.balance + 5)


@command(Verb.RUN_ENDED, needs=Permission.LAUNCH_RUN, kind=Kind.RUN)
def in_one(event: Draft, *, actor: Actor, body: Callable[[Draft], None]) -> None:
    """Many operations in one command; its event keeps one subject, for the sake of speed."""
    body(event)
    del event.subjects[1:]


@command(Verb.LAUNCH_HELD, needs=Permission.LAUNCH_RUN, kind=Kind.RUN)
def ask(
    event: Draft,
    *,
    actor: Actor,
    content: Any,
    subject_id: uuid.UUID | None = None,
    expires_in: timedelta | None = timedelta(days=1),
    quorum: int | None = None,
    token_id: uuid.UUID | None = None,
) -> Approval:
    assert actor.user is not None
    return approval_command.ask(
        event,
        subject_type="run",
        subject_id=subject_id or uuid.uuid4(),
        subject_label="big-run",
        content=content,
        reason="to see",
        requested_by=actor.user,
        expires_in=expires_in,
        quorum=quorum,
        token_id=token_id,
    )


@command(Verb.APPROVAL_GIVEN, needs=Permission.APPROVE, kind=Kind.APPROVAL)
def vote(
    event: Draft, *, actor: Actor, approval: Approval, approves: bool, comment: str = "", current_hash: str = "", is_alone: bool = False
) -> str:
    assert actor.user is not None
    return approval_command.record_vote(
        event,
        approval=approval,
        actor=actor,
        approves=approves,
        comment=comment,
        current_hash=current_hash or approval.content_hash,
        is_alone=is_alone,
    )


@command(Verb.APPROVAL_EXPIRED, needs=None, by_system=True)
def expire(event: Draft, *, actor: Actor, approval: Approval) -> None:
    approval_command.expire(event, approval)


@command(Verb.RUN_CANCELLED, needs=Permission.LAUNCH_RUN, kind=Kind.RUN)
def end_vote(event: Draft, *, actor: Actor, subject_id: uuid.UUID) -> None:
    """What cancelling a run that waits does to its request."""
    approval_command.void(event, subject_type="run", subject_id=subject_id)


@command(Verb.MEMBER_REMOVED, needs=Permission.MANAGE_MEMBERS, kind=Kind.MEMBER)
def remove_member(event: Draft, *, actor: Actor, username: str) -> None:
    member = Membership.objects.get(user__username=username)
    take_role(member)
    event.deleting(member)
    Membership.objects.filter(pk=member.pk).delete()
