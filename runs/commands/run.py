"""Ending a run before its time. True at every step: queued work ends at once, running work once its processes have ended."""

from django.utils import timezone

from runs import queue
from runs.commands.move import move
from runs.lifecycle import OPEN_ATTEMPTS, RunStatus
from runs.models import Attempt, QueueItem, Run
from workspaces import ledger
from workspaces.access import Actor, Kind, Permission
from workspaces.accounts import lock_ledger
from workspaces.audit import Denied, Draft, Refusal, command
from workspaces.commands import approval
from workspaces.models import Unit
from workspaces.verbs import Verb


@command(Verb.RUN_CANCEL_ASKED, needs=Permission.CANCEL_RUN, kind=Kind.RUN)
def cancel_run(event: Draft, *, actor: Actor, run: Run, reason: str = "") -> Run:
    """Cancel one's own run."""
    if actor.user is None or run.requested_by_id != actor.user.pk:
        raise Denied(Permission.MANAGE_QUEUE, "runs of others")
    return _cancel(event, run=run, reason=reason)


@command(Verb.RUN_CANCEL_ASKED, needs=Permission.MANAGE_QUEUE, kind=Kind.RUN)
def cancel_any_run(event: Draft, *, actor: Actor, run: Run, reason: str = "") -> Run:
    """Cancel a run of whomever."""
    return _cancel(event, run=run, reason=reason)


def _cancel(event: Draft, *, run: Run, reason: str) -> Run:
    lock_ledger()  # before the run, as everywhere, so that no two commands wait for each other in a circle
    run = Run.objects.select_for_update(no_key=True).get(pk=run.pk)
    status = RunStatus(run.status)
    event.reason = reason
    event.about = run
    if run.is_terminal:
        raise Refusal(f"{run.name} has ended already: {run.get_status_display()}.")
    if status == RunStatus.CANCELLING:
        raise Refusal(f"{run.name} is being cancelled already.")
    if status in (RunStatus.DRAFT, RunStatus.AWAITING_APPROVAL, RunStatus.QUEUED):
        event.verb = Verb.RUN_CANCELLED
        approval.void(event, subject_type="run", subject_id=run.pk)
        end(event, run=run, status=RunStatus.CANCELLED, reason_code="cancelled", reason=reason)
        return run
    move(event, run, RunStatus.CANCELLING, reason=reason[:1000])
    for attempt in Attempt.objects.select_for_update(no_key=True).filter(run=run, status__in=sorted(OPEN_ATTEMPTS)):
        event.change(attempt, cancel_asked_at=timezone.now())
    queue.ring("watch_attempts", subject=run.pk)
    return run


def end(event: Draft, *, run: Run, status: RunStatus, reason_code: str = "", reason: str = "") -> None:
    """Move a run to its terminal status, once: leave the queue, settle what was reserved against what was used."""
    for item in QueueItem.objects.filter(run=run):
        event.deleting(item)
        item.delete()
    if run.reserved_gpu_ms or run.spent_gpu_ms:
        ledger.settle(
            event, unit=Unit.GPU_MS, reserved=run.reserved_gpu_ms, spent=run.spent_gpu_ms, run_id=run.pk, run_label=run.name,
            window_start=run.budget_window_at,
        )  # fmt: skip
    if run.reserved_api_micros or run.spent_api_micros:
        ledger.settle(
            event, unit=Unit.API_MICROS, reserved=run.reserved_api_micros, spent=run.spent_api_micros, run_id=run.pk, run_label=run.name,
            window_start=run.budget_window_at,
        )  # fmt: skip
    move(
        event, run, status, reason_code=reason_code, reason=(reason or run.reason)[:1000], reserved_gpu_ms=0, reserved_api_micros=0,
        ended_at=timezone.now(),
    )  # fmt: skip
    if run.sweep_id is not None:
        queue.ring("advance_sweep", subject=run.sweep_id)
