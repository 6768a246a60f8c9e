"""Statuses and moves of a run: terminal ones never leave, and how a process ended decides how its run ends."""

import itertools

import pytest

from runs.lifecycle import MOVES, TERMINAL, RunStatus, end_of, may_move


def test_every_status_has_its_moves_and_terminal_ones_none() -> None:
    assert set(MOVES) == set(RunStatus)
    assert all(not MOVES[status] for status in TERMINAL)
    assert not any(may_move(status, other) for status, other in itertools.product(TERMINAL, RunStatus))


def test_every_status_can_be_reached_and_can_end() -> None:
    reached = {RunStatus.DRAFT, RunStatus.QUEUED, RunStatus.AWAITING_APPROVAL}
    while more := {after for before in reached for after in MOVES[before]} - reached:
        reached |= more
    assert reached == set(RunStatus)
    for status in set(RunStatus) - TERMINAL:
        assert MOVES[status], f"{status} is a dead end"


@pytest.mark.parametrize(
    ("code", "reason", "said", "wants", "expected"),
    [
        (0, "exit", False, False, (RunStatus.SUCCEEDED, "")),
        (0, "exit", False, True, (RunStatus.FAILED, "ended_without_done")),
        (0, "exit", True, True, (RunStatus.SUCCEEDED, "")),
        (3, "exit", True, True, (RunStatus.FAILED, "exit_code")),
        (None, "exit", False, False, (RunStatus.FAILED, "signal")),
        (0, "wall_limit", True, False, (RunStatus.TIMED_OUT, "wall_limit")),
        (0, "output_limit", True, False, (RunStatus.FAILED, "budget_exceeded")),
        (None, "spend_limit", False, False, (RunStatus.FAILED, "budget_exceeded")),
        (0, "cancelled", False, False, (RunStatus.CANCELLED, "cancelled")),
        (None, "launcher_lost", False, False, (RunStatus.LOST, "launcher_lost")),
    ],
)
def test_how_a_run_ends(code: int | None, reason: str, said: bool, wants: bool, expected: tuple[RunStatus, str]) -> None:
    assert end_of(exit_code=code, reason=reason, said_done=said, wants_done=wants) == expected
