"""Statuses of a run and of its attempts, and the moves between them (decisions 9, contracts.md E). Pure."""

from enum import StrEnum


class RunStatus(StrEnum):
    DRAFT = "draft"
    AWAITING_APPROVAL = "awaiting_approval"
    QUEUED = "queued"
    STARTING = "starting"
    RUNNING = "running"
    AWAITING_INPUT = "awaiting_input"
    CANCELLING = "cancelling"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed_out"
    ABORTED = "aborted"
    LOST = "lost"


class AttemptStatus(StrEnum):
    CREATED = "created"
    RUNNING = "running"
    ENDED = "ended"
    INTERRUPTED = "interrupted"
    LOST = "lost"


R = RunStatus
TERMINAL = frozenset({R.SUCCEEDED, R.FAILED, R.CANCELLED, R.TIMED_OUT, R.ABORTED, R.LOST})
WAITING = frozenset({R.DRAFT, R.AWAITING_APPROVAL, R.QUEUED})  # nothing of it has been started
ACTIVE = frozenset({R.STARTING, R.RUNNING, R.AWAITING_INPUT, R.CANCELLING})  # may hold a process somewhere
OPEN_ATTEMPTS = frozenset({AttemptStatus.CREATED, AttemptStatus.RUNNING})

MOVES: dict[RunStatus, frozenset[RunStatus]] = {
    # Cancelled one by one they end at once; by the hundred they are marked first (runs/commands/cancel_many.py).
    R.DRAFT: frozenset({R.AWAITING_APPROVAL, R.QUEUED, R.CANCELLING, R.CANCELLED}),
    R.AWAITING_APPROVAL: frozenset({R.QUEUED, R.CANCELLING, R.CANCELLED, R.ABORTED}),
    R.QUEUED: frozenset({R.STARTING, R.CANCELLING, R.CANCELLED, R.ABORTED, R.FAILED}),
    R.STARTING: frozenset({R.RUNNING, R.QUEUED, R.CANCELLING, R.SUCCEEDED, R.FAILED, R.TIMED_OUT, R.LOST}),
    R.RUNNING: frozenset({R.AWAITING_INPUT, R.QUEUED, R.CANCELLING, R.SUCCEEDED, R.FAILED, R.TIMED_OUT, R.LOST}),
    R.AWAITING_INPUT: frozenset({R.RUNNING, R.QUEUED, R.CANCELLING, R.FAILED, R.TIMED_OUT, R.LOST}),
    # A run that ends by itself before the cancel reaches it keeps its own end: the page never says cancelled about work that was done.
    R.CANCELLING: frozenset({R.CANCELLED, R.SUCCEEDED, R.FAILED, R.TIMED_OUT, R.LOST}),
    **{status: frozenset() for status in TERMINAL},
}


def may_move(before: RunStatus, after: RunStatus) -> bool:
    return after in MOVES[before]


def can_be_cancelled(status: RunStatus, newest: AttemptStatus | None) -> bool:
    """Is there anything left to cancel of a run whose newest attempt has that status (None: it has none)? Of one that ended by itself only what it
    left is being collected. One that was lost or interrupted may be started again, which a cancel forestalls."""
    return status in WAITING or (status in ACTIVE and status != R.CANCELLING and newest != AttemptStatus.ENDED)


def end_of(*, exit_code: int | None, reason: str, said_done: bool, wants_done: bool) -> tuple[RunStatus, str]:
    """Terminal status and reason code of a run whose last attempt ended.

    `reason` is why the process ended: exit, wall_limit, cancelled, log_limit, output_limit, memory_limit, spend_limit, foreign_spend,
    launcher_lost, engine_failed (its engine could not start it), engine_cancelled (somebody ended it there).
    """
    if reason == "wall_limit":
        return R.TIMED_OUT, "wall_limit"
    if reason == "cancelled":
        return R.CANCELLED, "cancelled"
    if reason in {"log_limit", "output_limit", "memory_limit", "spend_limit", "foreign_spend"}:
        return R.FAILED, "budget_exceeded"
    if reason == "launcher_lost":
        return R.LOST, "launcher_lost"
    if reason in {"engine_failed", "engine_cancelled"}:
        return R.FAILED, reason
    if exit_code == 0:
        return (R.FAILED, "ended_without_done") if wants_done and not said_done else (R.SUCCEEDED, "")
    return R.FAILED, "signal" if exit_code is None else "exit_code"
