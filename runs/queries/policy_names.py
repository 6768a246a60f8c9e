"""What a policy names that is not in the workspace: asked when a version is proposed, and again whenever it decides."""

from contextlib import suppress
from typing import Any

from runs.expressions.answered import expression_faults
from runs.models import Policy as PolicyRow
from runs.policy.document import Policy
from runs.policy.results import results_faults
from runs.queries.policy_conflicts import KINDS, conflict_faults
from workspaces.models import Agent, Benchmark, Dataset, NotFound, Pool

CHECKED = {"benchmark": Benchmark, "over": Agent}  # of checks


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


def standing_faults(row: PolicyRow, policy: Policy) -> list[str]:
    """What only the workspace can say of a document that was taken: what `faults_beside` says, and expressions that are none. These ask a process,
    which nobody should do under a lock."""
    return [*faults_beside(row, policy), *expression_faults(policy)]


def faults_beside(row: PolicyRow, policy: Policy) -> list[str]:
    """Names that nothing bears, checks that nobody could answer, where the policy is narrowed to a benchmark an action on another, and what it
    would do to other policies or to itself: all that may have come to be since somebody looked."""
    return [*name_faults(policy), *results_faults(policy), *narrowing_faults(row, policy), *conflict_faults(row, policy)]


def narrowing_faults(row: PolicyRow, policy: Policy) -> list[str]:
    """Where the policy is narrowed to a benchmark, whatever the document names must be that one; one that is not there is no fault of this."""
    if row.benchmark_id is None:
        return []
    found = []
    for place, part in (("trigger", policy.trigger), ("action", policy.action)):
        with suppress(NotFound):
            if "benchmark" in part and Benchmark.objects.find(part["benchmark"]).pk != row.benchmark_id:
                found.append(f"{place}: this policy is narrowed to {row.benchmark.slug}; its {place} names {part['benchmark'][:64]}.")
    return found


def names_here() -> list[tuple[str, list[str]]]:
    """What the editor offers to write: of each kind the names of the workspace, the first hundred."""
    kinds: dict[str, Any] = {"agent": Agent, "benchmark": Benchmark, "pool": Pool, "dataset": Dataset, "policy": PolicyRow}
    return [(noun, list(kind.objects.order_by("slug").values_list("slug", flat=True)[:100])) for noun, kind in kinds.items()]
