"""What policies would do to each other and to themselves: start for ever, promote under one name, launch one sweep twice. Pure.

Said before a version is approved and asked again when it is; a document that does so is refused with the way out.
"""

from collections.abc import Mapping
from typing import Any

from runs.policy.document import Policy

Named = Mapping[str, Policy]  # short name of a policy -> what its acting version says
# Limits that end a circle, or let it go round only so often.
BOUNDS = ("decisions", "gpu_hours", "gpu_hours_a_week", "budget_share_percent")
SAME = ("agent", "benchmark", "inputs", "parameters")  # of a launch: what makes it the same one
STARTED_BY = {
    # Runs make datasets grow and write memory; what of it, nobody says beforehand.
    "launch_sweep": {"sweep_ended", "run_ended", "evaluation_scored", "dataset_grew", "memory_written"},
    "launch_run": {"sweep_ended", "run_ended", "evaluation_scored", "dataset_grew", "memory_written"},
    "promote": {"promotion_decided"},
    # What policies write starts none (runs/queries/policy_cause.py), and memory is reviewed by people.
    "ask": {"question_answered"},  # a person stands between, and is not asked for ever either
}


def conflicts(slug: str, policy: Policy, others: Named) -> list[str]:
    """A sentence for each, about the policy `slug` beside the `others` that act."""
    beside = {name: other for name, other in others.items() if name != slug}
    return [*_circles(slug, policy, beside), *_same_name(policy, beside), *_same_sweep(policy, beside)]


def starts(first: Policy, second: Policy, name: str = "") -> bool:
    """May what the first, whose short name is `name`, does be what the second is asked about?"""
    if second.on not in STARTED_BY.get(first.does, ()):
        return False
    if first.does in ("launch_sweep", "launch_run") and second.on == "evaluation_scored":
        return second.trigger.get("agent") in (None, first.action["agent"])  # which benchmark it is scored on nobody says beforehand
    if first.does == "ask":
        answers = first.action.get("choices") or [second.trigger.get("answer")]
        return second.trigger.get("policy", name) == name and second.trigger.get("answer", answers[0]) in answers
    return all(second.trigger[key] == first.action.get(key, second.trigger[key]) for key in second.trigger if key != "on")


def is_bounded(policy: Policy) -> bool:
    """Does one of its own limits end it? GPU time bounds only what uses some."""
    names = BOUNDS if policy.does.startswith("launch") else ("decisions",)
    return any(name in policy.limits for name in names)


def _circles(slug: str, policy: Policy, beside: Named) -> list[str]:
    """The shortest way from what it does back to what it is asked about, through policies without a limit; one with a limit ends any circle."""
    if is_bounded(policy):
        return []
    ways: list[tuple[str, ...]] = [()]
    seen: set[str] = set()
    while ways:
        way = ways.pop(0)
        name, last = (way[-1], beside[way[-1]]) if way else (slug, policy)
        if starts(last, policy, name):
            through = f" through {', '.join(way)}" if way else ""
            return [
                f"limits: what it does may start it again{through}, and nothing ends that; "
                f"give it a limit of {', '.join(BOUNDS) if policy.does.startswith('launch') else 'decisions'}."
            ]
        for next_name, other in sorted(beside.items()):
            if next_name not in seen and not is_bounded(other) and starts(last, other, name):
                seen.add(next_name)
                ways.append((*way, next_name))
    return []


def _same_name(policy: Policy, beside: Named) -> list[str]:
    """Two gates before one name are as good as the weaker of them."""
    if policy.does != "promote":
        return []
    name = policy.action["name"]
    return [
        f"action: {other} puts artifacts forward as {name[:64]} too, so the two would contradict each other; use another name, or retire one of them."
        for other, one in sorted(beside.items())
        if one.does == "promote" and one.action["name"].casefold() == name.casefold()
    ]


def _same_sweep(policy: Policy, beside: Named) -> list[str]:
    if policy.does != "launch_sweep":
        return []
    return [
        f"action: {other} launches the same sweep already: the same agent, benchmark, inputs and axes; change one of these, or retire one of them."
        for other, one in sorted(beside.items())
        if one.does == "launch_sweep" and _sweep(one.action) == _sweep(policy.action)
    ]


def _sweep(action: Mapping[str, Any]) -> list[Any]:
    return [*(action.get(name) or None for name in SAME), action["choose"].get("axes")]
