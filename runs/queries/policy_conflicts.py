"""What a version would do to the policies that act, and to itself: asked when it is proposed, while it is written, and when it is approved."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from runs.models import Policy as PolicyRow
from runs.models import PolicyVersion
from runs.policy.conflicts import conflicts
from runs.policy.document import BadPolicy, Policy, read_policy
from workspaces import ids
from workspaces.models import Agent, Benchmark, Dataset, NotFound, Pool

KINDS: dict[str, Any] = {
    "agent": Agent, "benchmark": Benchmark, "pool": Pool, "dataset": Dataset, "windows_of": Dataset, "policy": PolicyRow,
}  # fmt: skip
PROMOTED = ("name", "promoted")


def conflict_faults(row: PolicyRow, policy: Policy) -> list[str]:
    """A sentence for each. Policies that are paused or stopped count: they may go on at any time."""
    acting = PolicyVersion.objects.filter(status=PolicyVersion.Status.ACTIVE).exclude(policy__status=PolicyRow.Status.RETIRED)
    others: dict[str, Policy] = {}
    for version in acting.exclude(policy=row).select_related("policy"):
        with suppress(BadPolicy):  # of another labsite: it fails by itself, and is said to
            others[version.policy.slug] = _spelled_alike(read_policy(version.document))
    return conflicts(row.slug, _spelled_alike(policy), others)


def _spelled_alike(policy: Policy) -> Policy:
    """The same with one spelling of every name: a thing is named by its short name or by its id, and what two policies name is compared as text."""
    action = _alike(policy.action)
    if "inputs" in action:
        action["inputs"] = [_alike(entry) for entry in action["inputs"]]
    return replace(policy, trigger=_alike(policy.trigger), action=action)


def _alike(part: Mapping[str, Any]) -> dict[str, Any]:
    found = dict(part)
    for name in part.keys() & KINDS.keys():
        with suppress(NotFound):  # which is said elsewhere
            found[name] = KINDS[name].objects.find(part[name]).slug
    return found | {name: ids.same_name(part[name]) for name in PROMOTED if name in part}
