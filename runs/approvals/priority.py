"""A priority above the limit up to which a run goes without an approver."""

from typing import Any

from runs.commands.queue import as_of_now, decide_priority, end_priority
from workspaces.asked_kinds import AskedKind, Content, Evidence


def evidence(content: Content) -> Evidence:
    asked, now, limit = (content.get(key) for key in ("priority", "priority_now", "highest_without_approval"))
    return Evidence(lines=[f"Priority {asked}, now {now}; up to {limit} a run goes without an approver."])


def page(key: Any, content: Content) -> tuple[str, ...]:
    return ("run", key.hex)


KIND = AskedKind(
    name="priority",
    one="priority above the limit",
    many="Priorities",
    evidence=evidence,
    decide=decide_priority,
    end=end_priority,
    page=page,
    now=as_of_now,
)
