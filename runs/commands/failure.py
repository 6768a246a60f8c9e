"""Why runs fail: a run that fails joins those of its agent that failed alike, and people say that they have taken note."""

from dataclasses import dataclass

from django.utils import timezone

from runs.commands.harvest import LACKING
from runs.error_lines import cause_of
from runs.lifecycle import RunStatus
from runs.models import Failure, FailureGroup, Run
from workspaces.access import Actor, Kind, Permission
from workspaces.audit import Draft, Refusal, command
from workspaces.verbs import Verb

FAILED = frozenset({RunStatus.FAILED, RunStatus.TIMED_OUT, RunStatus.LOST})


@dataclass(frozen=True, slots=True)
class Evidence:
    """How the last attempt of a run ended, and the lines that it wrote about it, secrets blotted out."""

    exit_code: int | None = None
    exit_signal: int | None = None
    lines: tuple[str, ...] = ()


NOTHING_SAID = Evidence()


@command(Verb.FAILURE_ACKNOWLEDGED, needs=Permission.LAUNCH_RUN, kind=Kind.RUN)
def acknowledge_failure(event: Draft, *, actor: Actor, group: FailureGroup, reason: str) -> FailureGroup:
    """Say that somebody has taken note of why runs fail, and what comes of it. It is open again as soon as another run fails so."""
    given = reason.strip()[:1000]
    if not given:
        raise Refusal("Say what comes of it; others will read it.", field="reason")
    if actor.user is None:
        raise Refusal("A person takes note, who answers for it.")
    group = FailureGroup.objects.select_for_update(no_key=True).get(pk=group.pk)
    if not group.is_open:
        raise Refusal("Somebody has taken note of it already, and no run has failed so since.")
    event.reason = given
    event.change(group, acknowledged_at=timezone.now(), acknowledged_by=actor.user, acknowledged_reason=given)
    return group


# --- Pieces -------------------------------------------------------------------------------------------------------------------------------


def file_failure(event: Draft, *, run: Run, status: RunStatus, reason_code: str, reason: str, evidence: Evidence) -> None:
    """Put a run that ends into the group of those that failed alike; the ledger is locked, so that no two make the same group."""
    if status not in FAILED:
        return
    words = reason.partition(LACKING)[0].strip()
    if reason_code == "declared_lost":
        words = "An operator declared it lost: its pool did not answer."
    cause = cause_of(
        reason_code=reason_code, exit_code=evidence.exit_code, exit_signal=evidence.exit_signal, words=words, lines=evidence.lines
    )  # fmt: skip
    now = timezone.now()
    locked = FailureGroup.objects.select_for_update(no_key=True, of=("self",)).select_related("agent")
    group = locked.filter(agent=run.agent_id, fingerprint=cause.fingerprint).first()
    if group is None:
        group = FailureGroup.objects.create(
            agent_id=run.agent_id, fingerprint=cause.fingerprint, reason_code=reason_code, title=cause.title, count=1, first_at=now, last_at=now
        )  # fmt: skip
        event.created(group)
    else:
        event.change(group, count=group.count + 1, last_at=now)
    event.created(Failure.objects.create(group=group, run=run, lines=list(cause.lines)))
