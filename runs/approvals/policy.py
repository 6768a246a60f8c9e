"""A version of a policy: what it would have changed, had it acted in the weeks before it was proposed."""

from typing import Any

from runs.commands.policy import SUBJECT, decide_policy, end_policy
from workspaces.asked_kinds import AskedKind, Content, Evidence


def evidence(content: Content) -> Evidence:
    would, changes = content.get("would_have_changed"), content.get("changes")
    count = len(changes) if isinstance(changes, list) else 0
    lines = [would] if isinstance(would, str) and would else []
    replaces = content.get("replaces")
    if count and replaces:
        lines.append(f"{count} {'line' if count == 1 else 'lines'} of {replaces} went or came.")
    return Evidence(lines=lines)


def page(key: Any, content: Content) -> tuple[str, ...]:
    policy, version = content.get("policy"), content.get("version")
    return ("policy-version", str(policy), str(version)) if policy and version else ()


KIND = AskedKind(
    name=SUBJECT, one="version of a policy", many="Versions of policies", evidence=evidence, decide=decide_policy, end=end_policy, page=page
)
