"""What a version would do to the policies that act, and to itself: asked when it is proposed, while it is written, and when it is approved."""

from contextlib import suppress

from runs.models import Policy as PolicyRow
from runs.models import PolicyVersion
from runs.policy.conflicts import conflicts
from runs.policy.document import BadPolicy, Policy, read_policy


def conflict_faults(row: PolicyRow, policy: Policy) -> list[str]:
    """A sentence for each. Policies that are paused or stopped count: they may go on at any time."""
    acting = PolicyVersion.objects.filter(status=PolicyVersion.Status.ACTIVE).exclude(policy__status=PolicyRow.Status.RETIRED)
    others: dict[str, Policy] = {}
    for version in acting.exclude(policy=row).select_related("policy"):
        with suppress(BadPolicy):  # of another labsite: it fails by itself, and is said to
            others[version.policy.slug] = read_policy(version.document)
    return conflicts(row.slug, policy, others)
