"""From a sweep to its runs: launch the next members while few of them wait, and end it once all have ended."""

import uuid
from contextlib import suppress

from runs.commands.launch import launch_run
from runs.commands.sweep import break_off_sweep, end_sweep, launched, member_id, member_request
from runs.jobs.apart import apart
from runs.jobs.asker import asker_of
from runs.jobs.job import job
from runs.lifecycle import TERMINAL, RunStatus
from runs.models import Decision, Run, Sweep
from runs.queries.site_rules import site_stop
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


def _left_at_once(sweep: Sweep) -> int:
    """How many more runs the limit of its policy lets be under way at once; of a sweep that a person launched as many as it has."""
    decision = Decision.objects.filter(pk=sweep.decision_id).select_related("version").first() if sweep.decision_id is not None else None
    most: int | None = (decision.version.document.get("limits") or {}).get("runs_at_once") if decision is not None else None
    if decision is None or most is None:
        return sweep.members
    under_way = Run.objects.filter(sweep__decision__policy=decision.policy_id).exclude(status__in=sorted(TERMINAL))
    return max(0, most - under_way.count())


def _advance(actor: Actor, sweep: Sweep) -> None:
    asker = asker_of(sweep.requested_by, sweep.token_id, job_id=actor.job_id)
    if asker is None:
        break_off_sweep(actor=actor, sweep=sweep, reason="The token that asked for this sweep holds no longer.")
        return
    if sweep.decision_id is not None and site_stop():
        return  # the operators have stopped what policies do; it goes on when they let it
    done = launched(sweep)
    room = min(AHEAD - Run.objects.filter(sweep=sweep, status__in=WAITING).count(), _left_at_once(sweep))
    for number in range(done + 1, min(sweep.members, done + max(0, room)) + 1):
        try:
            launch_run(
                actor=asker, request=member_request(sweep, number), run_id=member_id(sweep, number), sweep=sweep, sweep_member=number
            )  # fmt: skip
        except (Refusal, Denied, NotFound) as fault:
            break_off_sweep(actor=actor, sweep=sweep, reason=f"Member {number} of {sweep.members} was not launched: {fault}"[:1000])
            return
    end_sweep(actor=actor, sweep=sweep)
