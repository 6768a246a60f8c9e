"""From a sweep to its runs: launch the next members while few of them wait, and end it once all have ended."""

import uuid
from contextlib import suppress

from runs.commands.launch import launch_run
from runs.commands.sweep import break_off_sweep, end_sweep, launched, member_id, member_request
from runs.jobs.apart import apart
from runs.jobs.asker import asker_of
from runs.jobs.job import job
from runs.lifecycle import RunStatus
from runs.models import Run, Sweep
from runs.queries.site_rules import site_stop
from runs.queries.sweep_waits import left_at_once
from workspaces.access import Actor
from workspaces.audit import Denied, Refusal
from workspaces.models import NotFound

AHEAD = 32  # members of one sweep that may wait at once: the queue stays readable, others are not crowded out
WAITING = (RunStatus.QUEUED, RunStatus.AWAITING_APPROVAL, RunStatus.STARTING)


@job
def advance_sweep(actor: Actor, subject: uuid.UUID) -> None:
    """Every sweep of the workspace that still runs, whichever bell was lost."""
    for sweep in Sweep.objects.filter(status=Sweep.Status.RUNNING).select_related("requested_by").order_by("created_at"):
        with apart("sweep", sweep=sweep.pk.hex), suppress(Refusal):  # not all have ended yet, or stopped by somebody else this moment
            _advance(actor, sweep)


def _advance(actor: Actor, sweep: Sweep) -> None:
    asker = asker_of(sweep.requested_by, sweep.token_id, job_id=actor.job_id)
    if asker is None:
        break_off_sweep(actor=actor, sweep=sweep, reason="The token that asked for this sweep holds no longer.")
        return
    if sweep.decision_id is not None and site_stop():
        return  # the operators have stopped what policies do; it goes on when they let it
    done = launched(sweep)
    room = min(AHEAD - Run.objects.filter(sweep=sweep, status__in=WAITING).count(), left_at_once(sweep))
    for number in range(done + 1, min(sweep.members, done + max(0, room)) + 1):
        try:
            launch_run(
                actor=asker, request=member_request(sweep, number), run_id=member_id(sweep, number), sweep=sweep, sweep_member=number
            )  # fmt: skip
        except (Refusal, Denied, NotFound) as fault:
            break_off_sweep(actor=actor, sweep=sweep, reason=f"Member {number} of {sweep.members} was not launched: {fault}"[:1000])
            return
    end_sweep(actor=actor, sweep=sweep)
