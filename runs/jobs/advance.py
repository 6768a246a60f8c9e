"""From a sweep to its runs: launch the next members while few of them wait, and end it once all have ended."""

import uuid

from django.utils import timezone

from runs.commands.launch import launch_run
from runs.commands.sweep import break_off_sweep, end_sweep, launched, member_id, member_request
from runs.jobs.job import job
from runs.lifecycle import TERMINAL, RunStatus
from runs.models import Run, Sweep
from workspaces.access import Actor
from workspaces.audit import Denied, Refusal
from workspaces.models import ActorKind, NotFound, Token

AHEAD = 32  # members of one sweep that may wait at once: the queue stays readable, others are not crowded out
WAITING = (RunStatus.QUEUED, RunStatus.AWAITING_APPROVAL, RunStatus.STARTING)


@job
def advance_sweep(actor: Actor, subject: uuid.UUID) -> None:
    """Every sweep of the workspace that still runs, whichever bell was lost."""
    for sweep in Sweep.objects.filter(status=Sweep.Status.RUNNING).select_related("requested_by").order_by("created_at"):
        try:
            _advance(actor, sweep)
        except Refusal:
            continue  # stopped or ended by somebody else this moment


def _advance(actor: Actor, sweep: Sweep) -> None:
    asker = _asker(sweep, actor.job_id)
    if asker is None:
        break_off_sweep(actor=actor, sweep=sweep, reason="The token that asked for this sweep holds no longer.")
        return
    done = launched(sweep)
    room = AHEAD - Run.objects.filter(sweep=sweep, status__in=WAITING).count()
    for number in range(done + 1, min(sweep.members, done + max(0, room)) + 1):
        if not Sweep.objects.filter(pk=sweep.pk, status=Sweep.Status.RUNNING).exists():
            return  # stopped meanwhile
        try:
            launch_run(
                actor=asker, request=member_request(sweep, number), run_id=member_id(sweep, number), sweep=sweep, sweep_member=number
            )  # fmt: skip
        except (Refusal, Denied, NotFound) as fault:
            break_off_sweep(actor=actor, sweep=sweep, reason=f"Member {number} of {sweep.members} was not launched: {fault}"[:1000])
            return
    if launched(sweep) == sweep.members and not Run.objects.filter(sweep=sweep).exclude(status__in=sorted(TERMINAL)).exists():
        end_sweep(actor=actor, sweep=sweep)


def _asker(sweep: Sweep, job_id: str) -> Actor | None:
    """Whoever asked, with the rights of this moment; None where it was a token that has ended since."""
    asker = Actor.of(sweep.requested_by, job_id=job_id)
    if sweep.token_id is None:
        return asker
    token = Token.objects.filter(pk=sweep.token_id, revoked_at=None, expires_at__gt=timezone.now()).first()
    if token is None or not sweep.requested_by.is_active:
        return None
    kind = ActorKind.SERVICE if token.kind == Token.Kind.SERVICE else asker.kind
    return Actor(
        kind=kind, user=sweep.requested_by, label=asker.label, token_id=token.pk, token_scopes=frozenset(token.scopes),
        token_workspace_id=token.workspace_id, job_id=job_id,
    )  # fmt: skip
