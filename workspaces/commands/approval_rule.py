"""Saying who must approve a kind of request, and for how long it waits."""

from workspaces.access import Actor, Kind, Permission
from workspaces.accounts import lock_ledger
from workspaces.asked_kinds import asked_kinds
from workspaces.audit import Draft, Refusal, command
from workspaces.models import Approval, ApprovalRule, NotFound
from workspaces.queries.approval_rule import STRICTNESS, Role, reaches, rule_of
from workspaces.queries.member import people
from workspaces.verbs import Verb

MOST_APPROVERS = 10
LONGEST_HOURS = 24 * 366


@command(Verb.APPROVAL_RULE_SET, needs=Permission.MANAGE_WORKSPACE, kind=Kind.APPROVAL)
def set_rule(event: Draft, *, actor: Actor, kind: str, approvers: int, role: str, hours: int, reason: str) -> ApprovalRule:
    """Demand `approvers` people of at least `role` for requests of `kind`, and let one wait for `hours`.

    Where it becomes stricter (more people, or a higher role), it binds what waits already. Where it becomes looser it does not: whoever may set
    rules could otherwise ask first, and then let it through by a rule. How long one waits holds for what is asked from now on.
    """
    if kind not in asked_kinds():
        raise NotFound("rule")
    _check(kind, approvers, role, hours, reason)
    lock_ledger()
    before = rule_of(kind)
    if before.is_set and (before.approvers, before.role, before.hours) == (approvers, role, hours):
        raise Refusal("The rule says exactly this already.")
    event.reason = reason.strip()[:1000]
    row = ApprovalRule.objects.select_for_update(no_key=True).filter(kind=kind).first()
    if row is None:
        row = ApprovalRule.objects.create(kind=kind, approvers=approvers, role=role, hours=hours)
        event.created(row)
    else:
        event.change(row, approvers=approvers, role=role, hours=hours)
    event.details["tightened"] = _tighten(event, kind, approvers, role)
    return row


def _tighten(event: Draft, kind: str, approvers: int, role: str) -> int:
    """Bind what waits to what is stricter than it was asked under; answers how many requests that were."""
    waiting = Approval.objects.select_for_update(no_key=True).filter(subject_type=kind, status=Approval.Status.PENDING).order_by("pk")
    changes = []
    for approval in waiting:
        strict = {"quorum": max(approval.quorum, approvers), "role": max(approval.role, role, key=lambda one: STRICTNESS[Role(one)])}
        if (approval.quorum, approval.role) != (strict["quorum"], strict["role"]):
            changes.append((approval, strict))
    event.change_together(*changes)
    return len(changes)


def _check(kind: str, approvers: int, role: str, hours: int, reason: str) -> None:
    if role not in Role.values:
        raise Refusal(f"An approval counts from {', '.join(Role.values)}.", field="role")
    if isinstance(approvers, bool) or not 1 <= approvers <= MOST_APPROVERS:
        raise Refusal(f"From one to {MOST_APPROVERS} people approve.", field="approvers")
    if approvers > 1 and asked_kinds()[kind].choices is not None:
        raise Refusal("A question has one answer, so one person gives it; demand a higher role instead.", field="approvers")
    if isinstance(hours, bool) or not 1 <= hours <= LONGEST_HOURS:
        raise Refusal(f"A request waits for one hour at least, and {LONGEST_HOURS:,} at most.", field="hours")
    if not reason.strip():
        raise Refusal("Say why; it stands in the record.", field="reason")
    there = sum(reaches(person.may, role) for person in people())
    if there < approvers:
        raise Refusal(
            f"{there} {'person here holds' if there == 1 else 'people here hold'} that role; {approvers} would never come together. "
            "Demand fewer, or another role.",
            field="approvers",
        )
