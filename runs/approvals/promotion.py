"""A promotion: the checklist that it is put forward upon."""

from typing import Any

from runs.commands.promotion import SUBJECT, as_of_now, decide_promotion, end_promotion
from workspaces.asked_kinds import AskedKind, Content, Evidence
from workspaces.checklist import fact_checks


def evidence(content: Content) -> Evidence:
    """The checklist: what holds in one line by name, what does not as a line each."""
    facts, replaces = content.get("facts"), content.get("replaces")
    checks = fact_checks(facts) if isinstance(facts, list) else []
    holding = [check["name"] for check in checks if check["verdict"] == "yes"]
    lines = [f"{len(holding)} of {len(checks)} checks hold: {', '.join(holding)}."] if holding else []
    if isinstance(replaces, str) and replaces:
        lines.append(f"Takes the place of {replaces}.")
    return Evidence(checks=[check for check in checks if check["verdict"] != "yes"], lines=lines)


def page(key: Any, content: Content) -> tuple[str, ...]:
    return ("promotion", key.hex)


KIND = AskedKind(
    name=SUBJECT,
    one="promotion",
    many="Promotions",
    evidence=evidence,
    decide=decide_promotion,
    end=end_promotion,
    page=page,
    now=as_of_now,
)
