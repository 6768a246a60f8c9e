"""The gate of a policy that has put something forward: as it was when the policy decided, and as it is when a person does."""

from django.utils import timezone

from runs.checks.policy_facts import facts_for
from runs.eligibility import Fact, Verdict, facts_from
from runs.models import Decision
from runs.policy.checks import CHECKS, look
from runs.policy.document import Policy, read_policy
from runs.policy.facts import Cause
from runs.policy.site import gate_lines, reviewers_of
from runs.policy.site import gate_of as site_gate_of
from runs.queries.site_rules import site_facts
from workspaces.checklist import REVIEWS


def gate_of(decision: Decision) -> list[Fact]:
    """Of the checks that a decision keeps those of its gate and of the site's; conditions come first."""
    return facts_from(decision.checks)[len(_policy(decision).conditions) :]


def reviewers_wanted(decision: Decision) -> int:
    """How many people, none of whom is the author, its gate asks for, or the site's of that time or of now; 0 where none asks for any."""
    policy = _policy(decision)
    return max(reviewers_of(policy, decision.facts.get("site") or {}), reviewers_of(policy, site_facts(decision.policy_id, timezone.now())))


def shut_now(decision: Decision) -> list[Fact]:
    """Checks of the gate that are about what was put forward and do not pass any more, those of the site's rules of now too. A reviewer's word that
    is still to come is none of them."""
    policy, now = _policy(decision), timezone.now()
    asked = [entry for entry in policy.gate if CHECKS[entry["check"]].is_of_candidate]
    gates = site_gate_of(site_facts(decision.policy_id, now).get("document", {}), policy.does)
    of_site = [entry for entry in gates if CHECKS[entry["check"]].is_of_candidate]
    if not asked and not of_site:
        return []
    cause = Cause(decision.cause_type, decision.cause_id, decision.cause_label)
    facts = facts_for(decision.version, policy, cause, now)
    found = [*(look(entry, facts) for entry in asked), *gate_lines(policy, facts, of_site)]
    return [fact for fact in found if fact.verdict is not Verdict.PASS and not _is_to_come(fact)]


def _is_to_come(fact: Fact) -> bool:
    return fact.key in REVIEWS and fact.verdict is Verdict.UNKNOWN


def _policy(decision: Decision) -> Policy:
    return read_policy(decision.version.document)
