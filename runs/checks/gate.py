"""The gate of a policy that has put something forward: as it was when the policy decided, and as it is when a person does."""

from dataclasses import replace
from typing import Any

from django.utils import timezone

from runs.checks.policy_facts import facts_for
from runs.eligibility import Fact, Verdict, facts_from
from runs.expressions.answered import answered
from runs.expressions.worker import Asking
from runs.models import Decision
from runs.policy.checks import CHECKS, look
from runs.policy.document import Policy, read_policy
from runs.policy.facts import Cause, Facts
from runs.policy.facts import facts_from as facts_of
from runs.policy.site import gate_lines, reviewers_of
from runs.policy.site import gate_of as site_gate_of
from runs.queries.site_rules import site_facts
from workspaces.audit import Refusal
from workspaces.checklist import REVIEWS

EXPRESSION = "cel"


def gate_of(decision: Decision) -> list[Fact]:
    """Of the checks that a decision keeps those of its gate and of the site's; conditions come first."""
    return facts_from(decision.checks)[len(_policy(decision).conditions) :]


def reviewers_wanted(decision: Decision) -> int:
    """How many people, none of whom is the author, its gate asks for, or the site's of that time or of now; 0 where none asks for any."""
    policy = _policy(decision)
    return max(reviewers_of(policy, decision.facts.get("site") or {}), reviewers_of(policy, site_facts(decision.policy_id, timezone.now())))


def shut_now(decision: Decision) -> list[Fact]:
    """Checks of the gate that are about what was put forward and do not pass any more, expressions and those of the site's rules of now too. A
    reviewer's word that is still to come is none of them. Raises Refusal where an expression gives no answer: that may be other in a moment."""
    policy, now = _policy(decision), timezone.now()
    asked = [entry for entry in policy.gate if _is_asked_again(entry)]
    gates = site_gate_of(site_facts(decision.policy_id, now).get("document", {}), policy.does)
    of_site = [entry for entry in gates if _is_asked_again(entry)]
    if not asked and not of_site:
        return []
    cause = Cause(decision.cause_type, decision.cause_id, decision.cause_label)
    facts = _but_for_itself(facts_for(decision.version, policy, cause, now), decision)
    with Asking() as asking:
        facts = answered(policy, facts, asking)
    found = [*(look(entry, facts) for entry in asked), *gate_lines(policy, facts, of_site)]
    shut = [fact for fact in found if fact.verdict is not Verdict.PASS and not _is_to_come(fact)]
    silent = [fact for fact in shut if fact.verdict is Verdict.UNKNOWN and fact.key in (EXPRESSION, f"site_{EXPRESSION}")]
    if silent and all(fact.verdict is not Verdict.FAIL for fact in shut):
        raise Refusal(
            f"An expression of the gate gives no answer now, {silent[0].required[:200]}: {silent[0].words} Try again, or refuse it."
        )
    return shut


def _is_asked_again(entry: dict[str, Any]) -> bool:
    return entry["check"] == EXPRESSION or CHECKS[entry["check"]].is_of_candidate


def _but_for_itself(facts: Facts, decision: Decision) -> Facts:
    """What the policy has done is told as it was before this decision: else an expression such as `acted < 1` would shut out what it let through."""
    then = facts_of(decision.facts)
    history = ("acted", "failures", "last_acted_at", "under_way", "spent_gpu_ms", "spent_week_gpu_ms", "missing")
    return replace(facts, said={}, **{name: getattr(then, name) for name in history})


def _is_to_come(fact: Fact) -> bool:
    return fact.key in REVIEWS and fact.verdict is Verdict.UNKNOWN


def _policy(decision: Decision) -> Policy:
    return read_policy(decision.version.document)
