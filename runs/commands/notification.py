"""Telling whoever asked that a run, or a sweep with all its members, has ended: pieces of the commands that end them."""

from collections.abc import Mapping

from runs.lifecycle import RunStatus
from runs.models import Run, Sweep
from runs.queries.score import scores_of
from runs.queries.sweep import progress_of
from workspaces.commands.notification import notify
from workspaces.models import Notification
from workspaces.standings import amount_words
from workspaces.thresholds import stewards
from workspaces.units import number, plural


def tell_run_ended(run: Run, *, before: RunStatus) -> None:
    """Tell whoever asked for a run how it ended. `before` is the status that it had: a launch that was held until then is told of by its request.
    Members of a sweep are told of by the sweep; a retry of one was asked for by itself."""
    if before == RunStatus.AWAITING_APPROVAL or (run.sweep_id is not None and run.retry_of_id is None):
        return
    notify(
        [run.requested_by],
        cause=Notification.Cause.RUN_ENDED,
        subject_type="run",
        subject_id=run.pk,
        label=run.name,
        outcome=run.status,
        words=_score(run) or run.reason,
    )


def tell_run_overran(run: Run, overrun: Mapping[str, int]) -> None:
    """Tell whoever manages budgets that a run used more than was reserved for it; `overrun` is how much, by unit."""
    more = " and ".join(amount_words(amount, unit) for unit, amount in overrun.items() if amount)
    notify(
        stewards(),
        cause=Notification.Cause.RUN_OVERRAN,
        subject_type="run",
        subject_id=run.pk,
        label=run.name,
        words=f"{more} more than was reserved for it.",
    )


def tell_sweep_ended(sweep: Sweep) -> None:
    """Tell whoever asked for a sweep that it launches no more: all members have ended, or it was stopped."""
    progress = progress_of([sweep])[sweep.pk]
    words = f"{progress.succeeded:,} of {plural(sweep.members, 'member', 'members')} succeeded"
    under_way = progress.waiting + progress.active
    if under_way:
        words = f"{words}, {under_way:,} under way"
    notify(
        [sweep.requested_by],
        cause=Notification.Cause.SWEEP_ENDED,
        subject_type="sweep",
        subject_id=sweep.pk,
        label=sweep.name,
        outcome=sweep.status,
        words=f"{words}. {sweep.reason}" if sweep.reason else words,
    )


def _score(run: Run) -> str:
    found = scores_of([run]).get(run.pk) if run.status == RunStatus.SUCCEEDED else None
    return f"{run.contract.metric} {number(found.value, found.standard_error)}" if found is not None else ""
