"""The one way in which a run changes its status: by a move that the lifecycle allows (runs/lifecycle.py)."""

from typing import Any

from runs.lifecycle import RunStatus, may_move
from runs.models import Run
from workspaces.audit import Draft
from workspaces.kept_write import Writes


def move(event: Draft, run: Run, status: RunStatus, *, beside: Writes | None = None, **values: Any) -> None:
    """Set a run's status, and other fields with it; `beside` as in `Draft.change_together`.

    Raises ValueError for a move that the lifecycle has not: a fault of ours, never a user's."""
    before = RunStatus(run.status)
    if status != before and not may_move(before, status):
        raise ValueError(f"{run.name} cannot go from {before} to {status}.")
    event.change_together((run, {"status": status, **values}), beside=beside)
