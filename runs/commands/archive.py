"""Archiving a workspace: nothing in it is launched or changed any more, everything stays readable; and taking it out of the archive again.

The freeze is no list of doors: `workspaces.audit.command` refuses every command in an archived workspace but those that say why they work there.
"""

from typing import Any

from django.db.models import QuerySet
from django.utils import timezone

from runs import queue
from runs.commands.cancel_many import cancel_waiting, tell_cancelled
from runs.commands.move import move
from runs.lifecycle import ACTIVE, OPEN_ATTEMPTS, WAITING, AttemptStatus, RunStatus, can_be_cancelled
from runs.models import Attempt, Run, Sweep
from workspaces import scope
from workspaces.access import Actor, Kind, Permission
from workspaces.accounts import lock_ledger
from workspaces.audit import Draft, Refusal, command
from workspaces.models import Workspace
from workspaces.verbs import Verb

STOPPED = "The workspace was archived."


@command(Verb.WORKSPACE_ARCHIVED, needs=Permission.ARCHIVE, kind=Kind.WORKSPACE, in_archive="it makes the archive")
def archive_workspace(event: Draft, *, actor: Actor, reason: str, cancels_running: bool) -> Workspace:
    """Freeze the open workspace. What waits leaves the queue now, and is cancelled and its reservation released behind this command; what runs
    goes on to its end, or is cancelled. Sweeps launch no more members. The event has how many of each."""
    workspace = lock_ledger()  # an admission or a start that holds it comes first; the next one finds the archive
    if workspace.status == Workspace.Status.ARCHIVED:
        raise Refusal(f"{workspace.name} is archived already.")
    event.reason = _demanded(reason)
    event.about = workspace
    event.change(workspace, status=Workspace.Status.ARCHIVED, archived_at=timezone.now())
    counts = {"cancelled_waiting": _cancel_waiting(event, actor), "stopped_sweeps": _stop_sweeps(event)}
    asked = _cancel_running(event) if cancels_running else 0
    running = Run.objects.filter(status__in=sorted(ACTIVE)).exclude(status=RunStatus.CANCELLING).count()
    event.details |= counts | {"cancelled_running": asked, "going_on": running}
    event.verb = Verb.WORKSPACE_ARCHIVED  # whatever the end of a run made of it
    return workspace


@command(Verb.WORKSPACE_UNARCHIVED, needs=Permission.ARCHIVE, kind=Kind.WORKSPACE, in_archive="it ends the archive")
def unarchive_workspace(event: Draft, *, actor: Actor, reason: str) -> Workspace:
    """Open it again as it was: for launches, or still being set up. Nothing that was cancelled comes back by itself."""
    workspace = lock_ledger()
    if workspace.status != Workspace.Status.ARCHIVED:
        raise Refusal(f"{workspace.name} is not archived.")
    event.reason = _demanded(reason)
    before = Workspace.Status.ACTIVE if workspace.activated_at else Workspace.Status.CONFIGURING
    event.change(workspace, status=before, archived_at=None)
    return workspace


def _demanded(reason: str) -> str:
    if not reason.strip():
        raise Refusal("Say why; whoever finds the workspace closed or open again will read it.", field="reason")
    return reason.strip()[:1000]


def _cancel_waiting(event: Draft, actor: Actor) -> int:
    """Out of the queue at once; what never started ends behind this, a few at a time, so that a full queue holds up neither the archive nor others
    who want the ledger."""
    runs = list(_locked(status__in=sorted(WAITING)).defer("frozen", "parameters"))
    cancel_waiting(event, runs, STOPPED, "workspace_archived")
    tell_cancelled(actor, runs, STOPPED)
    return len(runs)


def _stop_sweeps(event: Draft) -> int:
    sweeps = list(Sweep.objects.select_for_update(no_key=True).filter(status=Sweep.Status.RUNNING).order_by("pk"))
    for sweep in sweeps:
        event.change(sweep, status=Sweep.Status.STOPPED, reason=STOPPED, ended_at=timezone.now())
    return len(sweeps)


def _cancel_running(event: Draft) -> int:
    """Ask for the end of whatever can be cancelled; what only waits for its files to be collected ends by itself."""
    count = 0
    for run in _locked(status__in=sorted(ACTIVE)):
        newest = Attempt.objects.select_for_update(no_key=True).filter(run=run).order_by("-number").first()
        if not can_be_cancelled(RunStatus(run.status), AttemptStatus(newest.status) if newest else None):
            continue
        move(event, run, RunStatus.CANCELLING, reason=STOPPED)
        if newest is not None and newest.status in OPEN_ATTEMPTS:
            event.change(newest, cancel_asked_at=timezone.now())
        count += 1
    if count:
        queue.ring("watch_attempts", subject=scope.current_id())
    return count


def _locked(**which: Any) -> QuerySet[Run]:
    return Run.objects.select_for_update(no_key=True).filter(**which).order_by("pk")
