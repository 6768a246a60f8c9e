"""A limit that should become larger, or go: what it is now and would be, and what was spent of it when that was asked."""

from typing import Any

from workspaces.asked_kinds import AskedKind, Content, Evidence
from workspaces.commands.limit import SUBJECT
from workspaces.commands.limit_raise import as_of_now, decide_raise, end_raise


def evidence(content: Content) -> Evidence:
    now, then, used = (content.get(key) for key in ("now", "then", "used_when_asked"))
    return Evidence(lines=[f"{now} → {then}", *([f"When it was asked: {used}."] if used else [])])


def page(key: Any, content: Content) -> tuple[str, ...]:
    """A limit that is gone has no page; the request says what it was."""
    return ("budget",)


KIND = AskedKind(
    name=SUBJECT,
    one="larger limit",
    many="Larger limits",
    evidence=evidence,
    decide=decide_raise,
    end=end_raise,
    page=page,
    now=as_of_now,
    without_rule="whoever manages budgets raises and removes limits at once",
)
