"""The rules of the installation for policies: those that hold, what a decision freezes of them, and whom others would touch."""

import uuid
from collections import deque
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from runs.expressions.answered import answered
from runs.expressions.worker import Asking
from runs.models import Decision, Policy, PolicyVersion
from runs.policy.decide import Outcome, decide
from runs.policy.document import BadPolicy, read_policy
from runs.policy.document import Policy as PolicyDocument
from runs.policy.facts import facts_from
from runs.policy.site import forbidden_words, touches
from workspaces import kept_query, scope
from workspaces.models import SiteRules, Workspace

WEEKS, MOST_DECISIONS, MOST_WORKSPACES = 4, 200, 500  # of a forecast: decisions of one policy, the newest
DAY = timedelta(days=1)


def rules_that_hold() -> SiteRules | None:
    return kept_query.first(SiteRules, status=SiteRules.Status.ACTIVE)


def site_facts(policy_id: uuid.UUID, now: datetime) -> dict[str, Any]:
    """What a decision of this policy keeps of them; empty where none hold."""
    rules = SiteRules.objects.filter(status=SiteRules.Status.ACTIVE).first()
    if rules is None or not rules.document:
        return {}
    acted = Decision.objects.filter(policy=policy_id, outcome=Outcome.ACTS, created_at__gt=now - DAY).count()
    return {"version": rules.number, "document": rules.document, "acted_lately": acted}


def site_stop() -> str:
    """Why no policy may act now; empty where they may. Asked again at the moment of acting, since a stop is meant at once."""
    return _stop_of(rules_that_hold())


def site_bars(policy: PolicyDocument) -> str:
    """Why this policy may not act now, whatever it has decided: a stop, or what rules forbid that hold since then. Sweeps under way go on."""
    rules = rules_that_hold()
    forbidden = forbidden_words(rules.document, policy) if rules is not None else []
    return _stop_of(rules) or (f"{forbidden[0]} (site rules, version {rules.number})." if rules and forbidden else "")


def _stop_of(rules: SiteRules | None) -> str:
    stopped = rules.document.get("paused", "") if rules is not None else ""
    return f"The operators have stopped every policy (site rules, version {rules.number}): {stopped}" if rules and stopped else ""


def forecast(document: dict[str, Any], *, now: datetime | None = None) -> list[dict[str, Any]]:
    """Of each workspace with acting policies that the rules touch: how many, of how many decisions of the last weeks, and how many of these would not
    have acted or would act again. Counts alone leave a workspace. What its facts do not tell counts as not passed."""
    since = (now or timezone.now()) - timedelta(weeks=WEEKS)
    found = []
    for workspace in Workspace.objects.order_by("slug")[:MOST_WORKSPACES]:
        with scope.open_workspace(workspace.pk), Asking() as asking:
            counts = [_of_policy(version, document, since, asking) for version in _acting()]
        touched = [count for count in counts if count is not None]
        if touched:
            decisions, others = (sum(column) for column in zip(*touched, strict=True))
            found.append({"workspace": workspace.slug, "policies": len(touched), "decisions": decisions, "different": others})
    return found


def _acting() -> list[PolicyVersion]:
    rows = PolicyVersion.objects.filter(status=PolicyVersion.Status.ACTIVE, policy__status=Policy.Status.ACTIVE)
    return list(rows.select_related("policy").order_by("pk"))


def _of_policy(version: PolicyVersion, document: dict[str, Any], since: datetime, asking: Asking) -> tuple[int, int] | None:
    """(decisions, others) of one policy; None where the rules say nothing of it, before or after."""
    try:
        policy = read_policy(version.document)
    except BadPolicy:
        return None
    rows = list(Decision.objects.filter(version=version, created_at__gte=since).order_by("-number")[:MOST_DECISIONS])[::-1]
    held = rules_that_hold()
    if not touches(document, policy) and not (held is not None and touches(held.document, policy)):
        return None
    others, acted = 0, deque[datetime]()
    for row in rows:
        try:
            facts = facts_from(row.facts)
        except (ValueError, TypeError, KeyError):
            continue
        while acted and acted[0] <= row.created_at - DAY:
            acted.popleft()
        site = {"version": 0, "document": document, "acted_lately": len(acted)}
        outcome = decide(policy, answered(policy, replace(facts, site=site), asking)).outcome.value
        if outcome == Outcome.ACTS:
            acted.append(row.created_at)
        others += outcome != row.outcome
    return len(rows), others
