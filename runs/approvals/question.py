"""A question that a policy asks: answered, not approved."""

from typing import Any

from runs.commands.question import SUBJECT, as_of_now, decide_question, end_question
from runs.models import Decision
from workspaces.access import Kind
from workspaces.asked_kinds import AskedKind, Behind, Content, Evidence, Page
from workspaces.models import Approval


def evidence(content: Content) -> Evidence:
    about, answers = content.get("asked_about"), choices(content)
    lines = [f"About {about}."] if isinstance(about, str) and about else []
    return Evidence(lines=[*lines, f"Answers: {', '.join(answers)}." if answers else "Answered in one’s own words."])


def page(key: Any, content: Content) -> tuple[str, ...]:
    return ("decision", key.hex)


def choices(content: Content) -> list[str]:
    found = content.get("choices")
    return [str(choice) for choice in found] if isinstance(found, list) else []


def behind(approval: Approval) -> Behind:
    decision = Decision.objects.select_related("policy").filter(pk=approval.subject_id).first()
    if decision is None:
        return Behind()
    return Behind.of_policy(
        decision.policy.slug, decision.number, decision.public_id, policy=Page("policy", decision.policy.slug, Kind.POLICY)
    )


KIND = AskedKind(
    name=SUBJECT,
    one="question of a policy",
    many="Questions",
    evidence=evidence,
    decide=decide_question,
    end=end_question,
    page=page,
    now=as_of_now,
    behind=behind,
    choices=choices,
)
