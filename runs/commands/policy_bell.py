"""Telling policies that something has happened: rung only where one acts, so that a workspace without policies pays one look."""

from runs import queue
from runs.models import PolicyVersion
from workspaces import kept_query, scope


def ring_policies() -> None:
    [acting] = kept_query.ask_together([policies_that_act()])
    if acting:
        queue.ring("decide_policies", subject=scope.current_id())


def policies_that_act() -> kept_query.Question:
    """What `ring_policies` asks, for one who asks for more in the same round trip."""
    return kept_query.question(PolicyVersion, status="active", limit=1)
