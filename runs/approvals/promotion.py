"""A promotion: the checklist that it is put forward upon."""

from typing import Any

from runs.commands.promotion import SUBJECT, decide_promotion, end_promotion
from workspaces.asked_kinds import AskedKind, Content, Evidence
from workspaces.checklist import fact_checks


def evidence(content: Content) -> Evidence:
    facts, replaces = content.get("facts"), content.get("replaces")
    return Evidence(
        checks=fact_checks(facts) if isinstance(facts, list) else [],
        lines=[f"Takes the place of {replaces}."] if isinstance(replaces, str) and replaces else [],
    )


def page(key: Any, content: Content) -> tuple[str, ...]:
    return ("promotion", key.hex)


KIND = AskedKind(name=SUBJECT, one="promotion", many="Promotions", evidence=evidence, decide=decide_promotion, end=end_promotion, page=page)
