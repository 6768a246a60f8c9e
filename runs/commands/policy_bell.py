"""Telling policies that something has happened: rung only where one acts, so that a workspace without policies pays one look."""

from runs import queue
from runs.models import PolicyVersion
from workspaces import kept_query, scope


def ring_policies() -> None:
    if kept_query.rows(PolicyVersion, status="active", limit=1):
        queue.ring("decide_policies", subject=scope.current_id())
