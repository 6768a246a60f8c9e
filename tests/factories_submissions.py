"""Runs that end as a test wants it, by the commands that end runs, and scores on the benchmark `accuracy` without a process."""

import math

from django.utils import timezone

from runs.commands.attempt import FIRST_FENCE, end_attempt, mark_running, start_attempt
from runs.commands.ending import finish_run
from runs.commands.harvest import Harvest
from runs.models import Attempt, Run
from runs.pools.base import Exit
from runs.pools.events import Score
from workspaces.access import Actor

SYSTEM = Actor.system(job_id="test")


def start(run: Run) -> Attempt:
    return mark_running(actor=SYSTEM, attempt=start_attempt(actor=SYSTEM, run=run), fence=FIRST_FENCE)


def finish(
    run: Run,
    value: float | None = None,
    *,
    error: float | None = None,
    code: int = 0,
    reason: str = "exit",
    others: dict[str, float] | None = None,
    benchmark: str = "accuracy",
    metric: str = "accuracy",
) -> Run:
    """Start the run and end it at once with an exit code; `value` is the score that it reports, `others` are further metrics."""
    return end(start(run), value, error=error, code=code, reason=reason, others=others, benchmark=benchmark, metric=metric)


def end(
    attempt: Attempt,
    value: float | None = None,
    *,
    error: float | None = None,
    code: int = 0,
    reason: str = "exit",
    others: dict[str, float] | None = None,
    benchmark: str = "accuracy",
    metric: str = "accuracy",
) -> Run:
    now = math.floor(timezone.now().timestamp())
    ended = Exit(code=code, signal=None, started_at=now - 1, ended_at=now, reason=reason, peak_memory_bytes=None, cpu_seconds=None)
    end_attempt(actor=SYSTEM, attempt=attempt, fence=FIRST_FENCE, ended=ended)
    scores = [Score(benchmark, name, other, None, None) for name, other in (others or {}).items()]
    if value is not None:
        scores.append(Score(benchmark, metric, value, error, 100))
    return finish_run(actor=SYSTEM, attempt=attempt, harvest=Harvest(scores=tuple(scores)))
