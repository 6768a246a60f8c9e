"""Cancelling many runs at once: one command that is answered at once, and what becomes of those that had not started, carried out behind it."""

import uuid
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from django.db.models.functions import Now

from runs import queue
from runs.commands.run import end
from runs.lifecycle import OPEN_ATTEMPTS, WAITING, AttemptStatus, RunStatus, can_be_cancelled, may_move
from runs.models import Attempt, QueueItem, Run
from runs.queries.cancelling import MOST, never_started
from workspaces import scope
from workspaces.access import Actor, Kind, Permission, Rights
from workspaces.accounts import lock_ledger
from workspaces.audit import Denied, Draft, Refusal, command
from workspaces.commands import approval
from workspaces.commands.notification import notify
from workspaces.models import NotFound, Notification, User
from workspaces.reasons import because
from workspaces.units import plural
from workspaces.verbs import Verb


@dataclass(frozen=True, slots=True)
class Cancelled:
    """How many runs end without having started, how many are stopped, and how many there was nothing to cancel of."""

    waiting: int
    working: int
    left: int

    @property
    def words(self) -> str:
        parts = [
            f"{plural(self.waiting, 'run', 'runs')} that had not started end now" if self.waiting else "",
            f"{plural(self.working, 'run is', 'runs are')} being stopped" if self.working else "",
            f"{plural(self.left, 'had ended or was', 'had ended or were')} ending already" if self.left else "",
        ]
        return f"{'; '.join(part for part in parts if part)}."


def cancel_runs(*, actor: Actor, rights: Rights, runs: Sequence[uuid.UUID], reason: str) -> Cancelled:
    """Cancel runs by the right that the actor holds: that to the queue, or that to one's own."""
    may_any = rights.allows(Permission.MANAGE_QUEUE, Kind.RUN)
    return (cancel_any_runs if may_any else cancel_own_runs)(actor=actor, runs=runs, reason=reason)


@command(Verb.RUN_MANY_CANCEL_ASKED, needs=Permission.CANCEL_RUN, kind=Kind.RUN, in_archive="running work comes to its end")
def cancel_own_runs(event: Draft, *, actor: Actor, runs: Sequence[uuid.UUID], reason: str = "") -> Cancelled:
    """Cancel runs of one's own, at most 1,000. Those that end by themselves meanwhile keep their own end."""
    found = _locked(runs)
    if any(not actor.is_user(run.requested_by_id) for run in found):
        raise Denied(Permission.MANAGE_QUEUE, "runs of others")
    return _cancel(event, actor, found, reason)


@command(Verb.RUN_MANY_CANCEL_ASKED, needs=Permission.MANAGE_QUEUE, kind=Kind.RUN, in_archive="running work comes to its end")
def cancel_any_runs(event: Draft, *, actor: Actor, runs: Sequence[uuid.UUID], reason: str) -> Cancelled:
    """Cancel runs of whomever, at most 1,000, with a reason that they will read."""
    found = _locked(runs)
    if any(not actor.is_user(run.requested_by_id) for run in found):
        reason = because(reason, "Say why; those who asked for these runs will read it.")
    return _cancel(event, actor, found, reason)


@command(Verb.RUN_MANY_CANCELLED, needs=None, by_system=True, in_archive="running work comes to its end")
def end_cancelled_runs(event: Draft, *, actor: Actor, runs: Collection[uuid.UUID]) -> int:
    """End runs that are to be cancelled and have never started: what was reserved for them is free. Returns how many."""
    lock_ledger()
    rows = list(never_started().select_for_update(of=("self",), no_key=True).filter(pk__in=runs).order_by("pk"))
    if not rows:
        raise Refusal("They have ended meanwhile.")
    event.changing(*rows)
    event.details["count"] = len(rows)
    for run in rows:
        end(event, run=run, status=RunStatus.CANCELLED, reason_code=run.reason_code or "cancelled", reason=run.reason, tells=False)
    return len(rows)


# --- Pieces -------------------------------------------------------------------------------------------------------------------------------


def _locked(keys: Sequence[uuid.UUID]) -> list[Run]:
    wanted = set(keys)
    if len(wanted) > MOST:
        raise Refusal(
            f"{len(wanted):,} runs are named, and one command takes {MOST:,}. Cancel {MOST:,} of them first, then the other "
            f"{len(wanted) - MOST:,}."
        )
    if not wanted:
        raise Refusal("No run is chosen.")
    lock_ledger()
    rows = Run.objects.select_for_update(no_key=True).defer("frozen", "parameters").filter(pk__in=wanted)
    found = list(rows.order_by("pk"))
    if len(found) != len(wanted):
        raise NotFound("run")
    return found


def _cancel(event: Draft, actor: Actor, runs: list[Run], reason: str) -> Cancelled:
    reason = reason.strip()[:1000]
    active = [run for run in runs if run.is_active]
    attempts = list(Attempt.objects.select_for_update(no_key=True).filter(run__in=active).order_by("number"))
    newest = {attempt.run_id: AttemptStatus(attempt.status) for attempt in attempts}
    waiting = [run for run in runs if run.status in WAITING]
    working = [run for run in active if can_be_cancelled(RunStatus(run.status), newest.get(run.pk))]
    chosen = waiting + working
    if not chosen:
        raise Refusal(
            f"{plural(len(runs), 'run is', 'runs are')} chosen, and each has ended or is ending. There is nothing left to cancel."
        )
    event.reason = reason
    event.about = chosen[0]
    event.details["count"] = len(chosen)
    event.changing(*chosen)
    cancel_waiting(event, waiting, reason, "cancelled")
    _mark(event, working, reason)
    working_keys = {run.pk for run in working}
    _ask_to_stop(event, [one for one in attempts if one.run_id in working_keys and one.status in OPEN_ATTEMPTS])
    tell_cancelled(actor, chosen, reason)
    queue.ring("watch_attempts", subject=scope.current_id())
    return Cancelled(len(waiting), len(working), len(runs) - len(chosen))


def cancel_waiting(event: Draft, runs: Sequence[Run], reason: str, code: str) -> None:
    """Cancel runs that wait, locked with the ledger, however many: those that never started are marked with `reason` and `code`, and end behind
    this command. Nobody is told."""
    approval.void_all(event, subject_ids=[run.pk for run in runs])
    tried = set(Attempt.objects.filter(run__in=[run.pk for run in runs]).values_list("run_id", flat=True))
    for run in runs:
        if run.pk in tried:  # put back into the queue once: few, and what earlier attempts have used is settled now
            end(event, run=run, status=RunStatus.CANCELLED, reason_code=code, reason=reason, tells=False)
    marked = [run for run in runs if run.pk not in tried]
    event.changing(*marked)
    _mark(event, marked, reason, code)
    queue.ring("end_cancelled", subject=scope.current_id())


def _mark(event: Draft, runs: list[Run], reason: str, code: str = "") -> None:
    """Out of the queue and on the way to their end, however many in a few statements."""
    items = list(QueueItem.objects.filter(run__in=runs).order_by("pk"))
    event.changing(*items)
    event.deleting(*items)
    QueueItem.objects.filter(pk__in=[item.pk for item in items]).delete()
    for run in runs:
        if not may_move(RunStatus(run.status), RunStatus.CANCELLING):
            raise ValueError(f"{run.name} cannot be cancelled from {run.status}.")
        event.note(run, {"status": (run.status, RunStatus.CANCELLING)})
    Run.objects.filter(pk__in=[run.pk for run in runs]).update(
        status=RunStatus.CANCELLING, reason=reason, **({"reason_code": code} if code else {})
    )


def _ask_to_stop(event: Draft, attempts: list[Attempt]) -> None:
    event.changing(*attempts)
    Attempt.objects.filter(pk__in=[attempt.pk for attempt in attempts]).update(cancel_asked_at=Now())


def tell_cancelled(actor: Actor, runs: list[Run], reason: str) -> None:
    """Others whose runs are cancelled are told once, not once for each run."""
    theirs: dict[uuid.UUID, list[Run]] = {}
    for run in runs:
        if not actor.is_user(run.requested_by_id):
            theirs.setdefault(run.requested_by_id, []).append(run)
    for user in User.objects.filter(pk__in=list(theirs)):
        first, *others = theirs[user.pk]
        label = f"{first.name} and {plural(len(others), 'other run', 'other runs')}" if others else first.name
        notify(
            [user],
            cause=Notification.Cause.RUN_ENDED,
            subject_type="run",
            subject_id=first.pk,
            label=label,
            outcome=RunStatus.CANCELLED,
            words=f"{actor.label} cancelled {'them' if others else 'it'}. Why: {reason}",
        )
