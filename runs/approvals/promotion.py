"""A promotion: the checklist that it is put forward upon."""

from typing import Any

from runs.commands.promotion import SUBJECT, as_of_now, decide_promotion, decision_behind, end_promotion
from runs.models import Promotion
from workspaces.access import Kind
from workspaces.asked_kinds import AskedKind, Behind, Content, Evidence, Page
from workspaces.checklist import fact_checks
from workspaces.models import Approval


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


def behind(approval: Approval) -> Behind:
    promotion = Promotion.objects.select_related("artifact__run").filter(pk=approval.subject_id).first()
    if promotion is None:
        return Behind()
    artifact, run = promotion.artifact, promotion.artifact.run
    pages = {"artifact": Page("artifact", artifact.public_id, Kind.ARTIFACT), "made_by": Page("run", run.public_id, Kind.RUN)}
    decision = decision_behind(approval)
    return Behind.of_policy(decision.policy.slug, decision.number, decision.public_id, **pages) if decision else Behind(pages=pages)


KIND = AskedKind(
    name=SUBJECT,
    one="promotion",
    many="Promotions",
    evidence=evidence,
    decide=decide_promotion,
    end=end_promotion,
    page=page,
    now=as_of_now,
    behind=behind,
)
