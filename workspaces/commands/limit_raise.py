"""Raising or removing a limit where the workspace's rule wants another person for it: asked for, decided, void once the limit is another.

Without a rule for this kind of request nobody is asked, so that a laboratory of one person can work; once there is one it can be changed and not
taken away. Lowering is always at once (feature 85), and so is whatever lets nobody spend more.
"""

import uuid
from collections.abc import Sequence
from typing import Any

from django.utils import timezone

from workspaces.access import Actor, Kind, Permission
from workspaces.accounts import lock_ledger
from workspaces.asked_kinds import AsOfNow
from workspaces.audit import Draft, Refusal, command
from workspaces.canonical import digest
from workspaces.commands import approval as requests
from workspaces.commands.limit import (
    SUBJECT,
    change,
    check_amount,
    check_removable,
    marks_of,
    remove,
    remove_limit,
    set_limit,
    wants_approval,
)
from workspaces.models import Approval, Limit, NotFound
from workspaces.queries.budget import limit_rows
from workspaces.reasons import because
from workspaces.standings import amount_words, name_of
from workspaces.verbs import Verb

Status = Approval.Status


def change_limit(
    *, actor: Actor, unit: str, window: str, amount: int, mode: str, reason: str = "", thresholds: Sequence[int] | None = None
) -> Limit | Approval:
    """Set the limit of (unit, window, mode) as `set_limit` does; or ask, where it becomes larger and the workspace's rule wants another person."""
    check_amount(unit, window, mode, amount)
    limit = Limit.objects.filter(unit=unit, window=window, mode=mode).first()
    if limit is not None and wants_approval(limit, amount):
        return ask_for_limit(actor=actor, limit=limit, amount=amount, reason=reason, thresholds=thresholds)
    return set_limit(actor=actor, unit=unit, window=window, amount=amount, mode=mode, reason=reason, thresholds=thresholds)


def drop_limit(*, actor: Actor, limit: Limit, reason: str) -> Approval | None:
    """Remove a limit, or ask for that; None where it is gone."""
    if wants_approval(limit, None):
        return ask_for_limit(actor=actor, limit=limit, amount=None, reason=reason)
    remove_limit(actor=actor, unit=limit.unit, window=limit.window, mode=limit.mode, reason=reason)
    return None


@command(Verb.LIMIT_RAISE_ASKED, needs=Permission.MANAGE_BUDGET, kind=Kind.BUDGET)
def ask_for_limit(
    event: Draft, *, actor: Actor, limit: Limit, amount: int | None, reason: str, thresholds: Sequence[int] | None = None
) -> Approval:
    """Ask another person for `amount` in place of what the limit is, or, with None, for its end. What was asked about it before is void."""
    if actor.user is None:
        raise Refusal("A larger limit is asked for by somebody who answers for it.")
    lock_ledger()
    standing = _locked(limit.pk)
    if standing is None:
        raise NotFound("limit")
    marks = marks_of(standing.window, thresholds)
    if amount is None:
        check_removable(standing)
    if not wants_approval(standing, amount):
        raise Refusal("The limit has changed meanwhile, and this needs nobody's approval now; look at it again.")
    event.reason = because(reason, "Say why the limit should change; whoever decides reads it.")
    requests.void(event, subject_type=SUBJECT, subject_id=standing.pk)
    content = content_of(standing, amount, marks)
    asked = requests.ask(
        event,
        subject_type=SUBJECT,
        subject_id=standing.pk,
        subject_label=standing.label,
        content=content,
        content_hash=digest(content["wanted"]),
        reason=event.reason,
        requested_by=actor.user,
        token_id=actor.token_id,
    )
    event.about = standing
    return asked


@command(Verb.APPROVAL_GIVEN, needs=Permission.APPROVE, kind=Kind.APPROVAL)
def decide_raise(
    event: Draft, *, actor: Actor, approval: Approval, approves: bool, comment: str = "", seen_hash: str, is_alone: bool = False
) -> Approval:
    """Approve or refuse. Approved, it is the larger one, in the window that is open too; void where it is not what it was when that was asked."""
    lock_ledger()
    asked, _ = requests.taken_up(approval, actor=actor, seen_hash=seen_hash)
    if approves:
        requests.demand_still(asked.requested_by, Permission.MANAGE_BUDGET, Kind.BUDGET, "change limits")
    limit = _locked(asked.subject_id)
    wanted = asked.content["wanted"]
    now = _wanted_now(limit, wanted)
    status = requests.record_vote(
        event,
        approval=asked,
        actor=actor,
        approves=approves,
        comment=comment,
        current_hash=digest(now),
        content_now={"wanted": now},
        is_alone=is_alone,
    )
    if status == Status.APPROVED and limit is not None:
        event.about = limit
        if event.verb != Verb.APPROVAL_FORCED:  # which nothing drowns out
            event.verb = Verb.LIMIT_REMOVED if wanted["amount"] is None else Verb.LIMIT_SET
        event.details |= {"asked_by": asked.requested_by.label, "asked_because": asked.reason}
        if wanted["amount"] is None:
            remove(event, limit)
        else:
            change(event, limit, wanted["amount"], wanted["thresholds"])
    return asked


# --- Pieces -------------------------------------------------------------------------------------------------------------------------------


def content_of(limit: Limit, amount: int | None, marks: list[int] | None) -> dict[str, Any]:
    """What an approver agrees to is `wanted`; the rest says it in words, and what was spent by then."""
    name, now = name_of(limit.unit, limit.window), amount_words(limit.amount, limit.unit)
    then = "no limit" if amount is None else amount_words(amount, limit.unit)
    row = next((row for row in limit_rows(timezone.now()) if row.limit.pk == limit.pk), None)
    return {
        "asks": f"Remove the limit of {now} on {name}" if amount is None else f"Raise {name} from {now} to {then}",
        "now": now,
        "then": then,
        "used_when_asked": f"{row.used} spent, {row.reserved or 'nothing'} reserved" if row and row.used else "",
        "wanted": _exactly(limit, amount, marks),
    }


def as_of_now(approval: Approval) -> AsOfNow | None:
    """What would be asked at this moment, for whoever looks before deciding."""
    if "wanted" not in approval.content:
        return None
    now = _wanted_now(Limit.objects.filter(pk=approval.subject_id).first(), approval.content["wanted"])
    return AsOfNow(digest(now), {"wanted": now})


def end_raise(event: Draft, asked: Approval, status: str, reason: str) -> None:
    """The limit stays as it is."""


def _wanted_now(limit: Limit | None, wanted: dict[str, Any]) -> dict[str, Any]:
    return _exactly(limit, wanted["amount"], wanted["thresholds"]) if limit is not None else {"amount_now": None}


def _exactly(limit: Limit, amount: int | None, marks: list[int] | None) -> dict[str, Any]:
    return {
        "unit": limit.unit,
        "window": limit.window,
        "mode": limit.mode,
        "amount_now": limit.amount,
        "amount": amount,
        "thresholds": marks,
        "revision": limit.revision,
    }


def _locked(key: uuid.UUID) -> Limit | None:
    return Limit.objects.select_for_update(no_key=True).filter(pk=key).first()
