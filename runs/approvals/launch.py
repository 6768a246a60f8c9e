"""A launch above a limit that asks for approval: the arithmetic of the limit is its evidence."""

from typing import Any

from runs.commands.approval import decide_launch, end_launch
from runs.models import Run
from runs.queries.frozen import thaw
from workspaces.asked_kinds import AskedKind, AsOfNow, Behind, Content, Evidence
from workspaces.asked_words import cost_words
from workspaces.checklist import checks
from workspaces.models import Approval


def evidence(content: Content) -> Evidence:
    """The lines that hold it up. The rest of its certificate stands on the page of the request."""
    lines = content.get("certificate")
    cost = cost_words(content)
    held = [check for check in checks(lines) if check["verdict"] != "yes"] if isinstance(lines, list) else []
    return Evidence(checks=held, lines=[f"{cost} at most"] if cost else [])


def page(key: Any, content: Content) -> tuple[str, ...]:
    return ("run", key.hex)


def now(approval: Approval) -> AsOfNow | None:
    run = Run.objects.filter(pk=approval.subject_id).first()
    if run is None:
        return None
    prepared = thaw(run)
    return AsOfNow(prepared.content_hash, prepared.frozen)


def behind(approval: Approval) -> Behind:
    run = Run.objects.select_related("sweep__decision__policy").filter(pk=approval.subject_id, sweep__decision__isnull=False).first()
    if run is None or run.sweep is None or run.sweep.decision is None:
        return Behind()
    decision = run.sweep.decision
    return Behind.of_policy(decision.policy.slug, decision.number, decision.public_id)


KIND = AskedKind(
    name="run",
    one="launch above a limit",
    many="Launches above a limit",
    evidence=evidence,
    decide=decide_launch,
    end=end_launch,
    page=page,
    now=now,
    behind=behind,
    days=30,
)
