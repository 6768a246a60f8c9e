"""Which results a policy looks at: those of what it launches; of another, those of what its trigger names. Pure."""

from runs.policy.document import Policy

CHECKS = frozenset({"best_score", "results_at_least", "target_not_reached"})  # they look at results


def asks_for_results(policy: Policy) -> bool:
    return any(entry["check"] in CHECKS for entry in (*policy.conditions, *policy.gate)) and "benchmark" in about_results(policy)


def about_results(policy: Policy) -> dict[str, str]:
    """The benchmark, and the agent where only its results count."""
    part = policy.action if policy.does.startswith("launch") else policy.trigger
    return {name: part[name] for name in ("agent", "benchmark") if name in part}


def results_faults(policy: Policy) -> list[str]:
    """A check of results that nobody could ever answer: no benchmark is named that they would be of."""
    if "benchmark" in about_results(policy):
        return []
    return [
        f"{place}, {number}: {entry['check']} looks at the results of a benchmark; name it in the trigger."
        for place, listed in (("conditions", policy.conditions), ("gate", policy.gate))
        for number, entry in enumerate(listed, start=1)
        if entry["check"] in CHECKS
    ]
