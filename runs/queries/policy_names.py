"""What a policy names that is not in the workspace: asked when a version is proposed, and again whenever it decides."""

from typing import Any

from runs.policy.document import Policy
from workspaces.models import Agent, Benchmark, Dataset, NotFound, Pool

CHECKED = {"benchmark": Benchmark, "over": Agent}  # of checks
KINDS: dict[str, Any] = {"agent": Agent, "benchmark": Benchmark, "pool": Pool, "dataset": Dataset, "windows_of": Dataset}


def name_faults(policy: Policy) -> list[str]:
    """A sentence for each name that nothing here bears."""
    inputs = [(f"action, input {number}", entry) for number, entry in enumerate(policy.action.get("inputs", ()), start=1)]
    found = []
    for place, part in (("trigger", policy.trigger), ("action", policy.action), *inputs):
        for name in part.keys() & KINDS.keys():
            try:
                KINDS[name].objects.find(part[name])
            except NotFound:
                found.append(f"{place}: there is no {name.replace('windows_of', 'dataset')} {part[name][:64]!r} in this workspace.")
    for place, listed in (("conditions", policy.conditions), ("gate", policy.gate)):
        for number, entry in enumerate(listed, start=1):
            for name in entry.keys() & CHECKED.keys():
                try:
                    CHECKED[name].objects.find(entry[name])
                except NotFound as error:
                    found.append(f"{place}, {number}: there is no {error.noun} {entry[name][:64]!r} in this workspace.")
    return sorted(found)
