"""A launch above a limit that asks for approval: the arithmetic of the limit is its evidence."""

from typing import Any

from runs.commands.approval import decide_launch, end_launch
from workspaces.asked_kinds import AskedKind, Content, Evidence
from workspaces.asked_words import cost_words
from workspaces.checklist import checks


def evidence(content: Content) -> Evidence:
    """The lines that hold it up. The rest of its certificate stands on the page of the request."""
    lines = content.get("certificate")
    cost = cost_words(content)
    held = [check for check in checks(lines) if check["verdict"] != "yes"] if isinstance(lines, list) else []
    return Evidence(checks=held, lines=[f"{cost} at most"] if cost else [])


def page(key: Any, content: Content) -> tuple[str, ...]:
    return ("run", key.hex)


KIND = AskedKind(
    name="run",
    one="launch above a limit",
    many="Launches above a limit",
    evidence=evidence,
    decide=decide_launch,
    end=end_launch,
    page=page,
    days=30,
)
