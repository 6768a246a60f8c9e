"""What the workspace demands of a kind of request: how many approve, of which role, for how long it waits."""

from collections.abc import Callable
from dataclasses import dataclass

from workspaces.access import Kind, Permission, Rights
from workspaces.asked_kinds import asked_kinds
from workspaces.models import Approval, ApprovalRule

Role = Approval.Role
HOURS_A_DAY = 24
# The right that only this role and those above it hold, so that a right tells the role, through whichever membership it came.
MARKS: dict[str, tuple[Permission, Kind]] = {
    Role.APPROVER: (Permission.APPROVE, Kind.APPROVAL),
    Role.ADMIN: (Permission.MANAGE_MEMBERS, Kind.APPROVAL),
    Role.OWNER: (Permission.TRANSFER, Kind.APPROVAL),
}
STRICTNESS = {Role.APPROVER: 0, Role.ADMIN: 1, Role.OWNER: 2}


@dataclass(frozen=True, slots=True)
class Rule:
    """`is_set`: the workspace says so; else it is what holds without a rule."""

    kind: str
    approvers: int = 1
    role: str = Role.APPROVER
    hours: int = 7 * HOURS_A_DAY
    is_set: bool = False

    @property
    def words(self) -> str:
        whom = {Role.APPROVER: "approver", Role.ADMIN: "admin or owner", Role.OWNER: "owner"}[Role(self.role)]
        if self.approvers == 1:
            return f"one {whom}"
        return f"{self.approvers} " + {"approver": "approvers", "admin or owner": "admins or owners", "owner": "owners"}[whom]


def rule_of(kind: str) -> Rule:
    row = ApprovalRule.objects.filter(kind=kind).first()
    return _rule(kind, row)


def rules() -> list[Rule]:
    """The rule of every kind there is, whether the workspace has said so or not."""
    rows = {row.kind: row for row in ApprovalRule.objects.all()}
    return [_rule(kind, rows.get(kind)) for kind in asked_kinds()]


def _rule(kind: str, row: ApprovalRule | None) -> Rule:
    if row is not None:
        return Rule(kind, row.approvers, row.role, row.hours, is_set=True)
    known = asked_kinds().get(kind)
    return Rule(kind, hours=(known.days if known else 7) * HOURS_A_DAY)


def reaches(may: Callable[[Permission, Kind], bool], role: str) -> bool:
    """Does whoever `may` tells of decide, and hold this role or one above it?"""
    return may(*MARKS[Role.APPROVER]) and may(*MARKS[Role(role)])


def roles_reached(rights: Rights) -> list[str]:
    """Roles whose word this one's is; none without the right to approve."""
    return [role for role in Role.values if reaches(rights.allows, role)]
