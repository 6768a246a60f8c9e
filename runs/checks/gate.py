"""The gate of a policy that has put something forward: as it was when the policy decided, and as it is when a person does."""

from django.utils import timezone

from runs.checks.policy_facts import facts_for
from runs.eligibility import Fact, Verdict, facts_from
from runs.models import Decision
from runs.policy.checks import CHECKS, look
from runs.policy.document import Policy, read_policy
from runs.policy.facts import Cause
from runs.policy.gates import REVIEW


def gate_of(decision: Decision) -> list[Fact]:
    """Of the checks that a decision keeps those of its gate; conditions come first."""
    return facts_from(decision.checks)[len(_policy(decision).conditions) :]


def reviewers_wanted(decision: Decision) -> int:
    """How many people, none of whom is the author, its gate asks for; 0 where it asks for none."""
    return max((int(entry.get("people", 1)) for entry in _policy(decision).gate if entry["check"] == REVIEW), default=0)


def shut_now(decision: Decision) -> list[Fact]:
    """Checks of the gate that are about what was put forward and do not pass any more. A reviewer's word that is still to come is none of them."""
    policy = _policy(decision)
    asked = [entry for entry in policy.gate if CHECKS[entry["check"]].is_of_candidate]
    if not asked:
        return []
    cause = Cause(decision.cause_type, decision.cause_id, decision.cause_label)
    facts = facts_for(decision.version, policy, cause, timezone.now())
    found = (look(entry, facts) for entry in asked)
    return [
        fact for fact in found if fact.verdict is not Verdict.PASS and not (fact.key == REVIEW and fact.verdict is Verdict.UNKNOWN)
    ]  # fmt: skip


def _policy(decision: Decision) -> Policy:
    return read_policy(decision.version.document)
