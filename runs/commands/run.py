"""Ending a run before its time. True at every step: queued work ends at once, running work once its processes have ended."""

from django.utils import timezone

from runs import queue
from runs.commands.failure import NOTHING_SAID, Evidence, file_failure
from runs.commands.move import move
from runs.commands.notification import tell_run_ended, tell_run_overran
from runs.lifecycle import OPEN_ATTEMPTS, WAITING, AttemptStatus, RunStatus, can_be_cancelled
from runs.models import Attempt, QueueItem, Run
from workspaces import kept_query, ledger, scope
from workspaces.access import Actor, Kind, Permission, Rights
from workspaces.accounts import limits_question, lock_ledger
from workspaces.audit import Denied, Draft, Refusal, command
from workspaces.commands import approval
from workspaces.kept_write import Writes
from workspaces.models import Unit
from workspaces.reasons import because
from workspaces.verbs import Verb


def cancel(*, actor: Actor, run: Run, reason: str = "") -> Run:
    """Cancel a run by the right that it takes: that to one's own, or that to the queue."""
    return (cancel_run if actor.is_user(run.requested_by_id) else cancel_any_run)(actor=actor, run=run, reason=reason)


def may_cancel(actor: Actor, rights: Rights, run: Run) -> bool:
    """Would `cancel` be carried out now? Pages that offer it ask this."""
    return rights.allows(
        Permission.CANCEL_RUN if actor.is_user(run.requested_by_id) else Permission.MANAGE_QUEUE, Kind.RUN
    ) and not _why_not(run)


@command(Verb.RUN_CANCEL_ASKED, needs=Permission.CANCEL_RUN, kind=Kind.RUN, in_archive="running work comes to its end")
def cancel_run(event: Draft, *, actor: Actor, run: Run, reason: str = "") -> Run:
    """Cancel one's own run."""
    if not actor.is_user(run.requested_by_id):
        raise Denied(Permission.MANAGE_QUEUE, "runs of others")
    return _cancel(event, run=run, reason=reason)


@command(Verb.RUN_CANCEL_ASKED, needs=Permission.MANAGE_QUEUE, kind=Kind.RUN, in_archive="running work comes to its end")
def cancel_any_run(event: Draft, *, actor: Actor, run: Run, reason: str = "") -> Run:
    """Cancel a run of whomever, with a reason that they will read."""
    if not actor.is_user(run.requested_by_id):
        reason = because(reason, f"Say why; whoever asked for {run.name} will read it.")
    return _cancel(event, run=run, reason=reason)


def _cancel(event: Draft, *, run: Run, reason: str) -> Run:
    lock_ledger()  # before the run, as everywhere, so that no two commands wait for each other in a circle
    run = Run.objects.select_for_update(no_key=True).get(pk=run.pk)
    status = RunStatus(run.status)
    event.reason = reason
    event.about = run
    why_not = _why_not(run)
    if why_not:
        raise Refusal(why_not)
    if status in WAITING:
        event.verb = Verb.RUN_CANCELLED
        approval.void(event, subject_type="run", subject_id=run.pk)
        end(event, run=run, status=RunStatus.CANCELLED, reason_code="cancelled", reason=reason)
        return run
    move(event, run, RunStatus.CANCELLING, reason=reason[:1000])
    for attempt in Attempt.objects.select_for_update(no_key=True).filter(run=run, status__in=sorted(OPEN_ATTEMPTS)):
        event.change(attempt, cancel_asked_at=timezone.now())
    queue.ring("watch_attempts", subject=scope.current_id())
    return run


def _why_not(run: Run) -> str:
    """Why a run cannot be cancelled, whoever asks; empty where it can."""
    if run.is_terminal:
        return f"{run.name} has ended already: {run.get_status_display()}."
    if run.status == RunStatus.CANCELLING:
        return f"{run.name} is being cancelled already."
    newest = Attempt.objects.filter(run=run).order_by("-number").values_list("status", flat=True).first() if run.is_active else None
    if not can_be_cancelled(RunStatus(run.status), AttemptStatus(newest) if newest else None):
        return f"The program of {run.name} has ended; what it left is being collected. There is nothing left to cancel."
    return ""


def asked_at_end(run: Run) -> list[kept_query.Question]:
    """What `end` asks first, for one who asks for more in the same round trip."""
    charged = [unit for unit, _, _ in charges(run)]
    of_ledger = [ledger.questions(unit=unit, run_id=run.pk, window_start=run.budget_window_at) for unit in charged]
    return [
        kept_query.question(QueueItem, run=run),
        *(question for questions in of_ledger for question in questions),
        *(limits_question(unit) for unit in charged),
    ]


def charges(run: Run) -> list[tuple[Unit, int, int]]:
    """(unit, reserved, spent) of what the ledger has of a run."""
    both = (
        (Unit.GPU_MS, run.reserved_gpu_ms, run.spent_gpu_ms),
        (Unit.API_MICROS, run.reserved_api_micros, run.spent_api_micros),
    )
    return [(unit, reserved, spent) for unit, reserved, spent in both if reserved or spent]


def end(
    event: Draft,
    *,
    run: Run,
    status: RunStatus,
    reason_code: str = "",
    reason: str = "",
    evidence: Evidence = NOTHING_SAID,
    tells: bool = True,
) -> None:
    """Move a run to its terminal status, once: leave the queue, settle what was reserved against what was used, tell whoever asked.
    One that fails joins those that failed alike; `evidence` says how."""
    if run.status == RunStatus.QUEUED:
        approval.void(event, subject_type="priority", subject_id=run.pk)  # nobody needs to decide any more how soon it goes
    for item in kept_query.rows(QueueItem, run=run):
        event.deleting(item)
        item.delete()
    charged_at = max((moment for moment in (run.budget_window_at, run.started_at) if moment is not None), default=None)
    overrun, writes = {}, Writes()
    for unit, reserved, spent in charges(run):
        overrun[unit.value] = ledger.settle(
            event, unit=unit, reserved=reserved, spent=spent, run_id=run.pk, run_label=run.name, window_start=charged_at, beside=writes
        )  # fmt: skip
    if any(overrun.values()):  # the alarm: the event of this end is about that, and home says it (workspaces.queries.overrun)
        event.verb = Verb.RUN_OVERRAN
        event.details["overrun"] = {unit: amount for unit, amount in overrun.items() if amount}
        tell_run_overran(run, overrun)
    before = RunStatus(run.status)
    move(
        event, run, status, reason_code=reason_code, reason=(reason or run.reason)[:1000], reserved_gpu_ms=0, reserved_api_micros=0,
        ended_at=timezone.now(), beside=writes,
    )  # fmt: skip
    writes.send()
    file_failure(event, run=run, status=status, reason_code=reason_code, reason=reason, evidence=evidence)
    if tells:
        tell_run_ended(run, before=before)
    if run.sweep_id is not None:
        queue.ring("advance_sweep", subject=run.sweep_id)
