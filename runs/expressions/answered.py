"""The facts of a decision with what a policy's expressions say of them: kept with the decision, so that deciding again is exact and asks nobody."""

from collections.abc import Iterable
from dataclasses import replace

from runs.expressions.source import BadExpression
from runs.expressions.worker import Asking
from runs.policy.document import Policy
from runs.policy.facts import Facts
from runs.policy.site import under


def expressions_of(policy: Policy) -> list[str]:
    return list(dict.fromkeys(entry["expression"] for entry in (*policy.conditions, *policy.gate) if entry["check"] == "cel"))


def answered(policy: Policy, facts: Facts, asking: Asking) -> Facts:
    """What was said of these facts before is not asked again. Expressions of the site's gates, as the facts froze them, are asked too."""
    unsaid = [source for source in expressions_of(under(policy, facts.site)) if source not in facts.said]
    if not unsaid:
        return facts
    found = asking.say(unsaid, facts.as_json())
    return replace(facts, said={**facts.said, **{source: said.as_json() for source, said in found.items()}})


def expression_faults(policy: Policy) -> list[str]:
    """What is wrong with its expressions, a sentence each."""
    return source_faults(expressions_of(policy))


def source_faults(sources: Iterable[str]) -> list[str]:
    faults = []
    with Asking() as asking:
        for source in sources:
            try:
                asking.check(source)
            except BadExpression as fault:
                faults.append(f"{source[:60]}: {fault}")
    return faults
