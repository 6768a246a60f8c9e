"""The record as sentences: who did what to what. What a run's page and the home page say of it; the audit page has every column."""

from dataclasses import dataclass
from datetime import datetime

from runs.terminal import plain
from workspaces.models import AuditEvent, EventPayload
from workspaces.verbs import Verb

V = Verb
LABEL_SHOWN = 60  # characters
# What everybody with a right to look may see on the home page: what was registered, launched, decided and given.
WORDS: dict[str, str] = {
    V.WORKSPACE_ACTIVATED: "opened {label} for launches",
    V.OBJECTIVE_SET: "set the objective: {label}",
    V.BENCHMARK_CREATED: "created the benchmark {label}",
    V.BENCHMARK_CHANGED: "changed the benchmark {label}",
    V.CONTRACT_PUBLISHED: "published a contract",
    V.DATASET_CREATED: "created the dataset {label}",
    V.DATASET_CHANGED: "changed the dataset {label}",
    V.DATASET_VERSION_IMPORTED: "imported a dataset version",
    V.AGENT_CREATED: "created the agent {label}",
    V.AGENT_CHANGED: "changed the agent {label}",
    V.AGENT_VERSION_PUBLISHED: "published an agent version",
    V.POOL_BOUND: "bound the pool {label}",
    V.POOL_CHANGED: "changed the pool {label}",
    V.LIMIT_SET: "set a limit",
    V.LIMIT_REMOVED: "removed a limit",
    V.APPROVAL_GIVEN: "approved {label}",
    V.APPROVAL_REFUSED: "refused {label}",
    V.APPROVAL_EXPIRED: "let the request for {label} expire",
    V.APPROVAL_VOIDED: "voided the request for {label}",
    V.LAUNCH_ADMITTED: "launched {label}",
    V.LAUNCH_HELD: "asked for an approval of {label}",
    V.LAUNCH_REFUSED: "asked for a run that was refused",
    V.RUN_CANCEL_ASKED: "asked {label} to end",
    V.RUN_CANCELLED: "cancelled {label}",
    V.RUN_REQUEUED: "put {label} back into the queue",
    V.RUN_ENDED: "recorded the end of {label}",
    V.ATTEMPT_STARTED: "started {label}",
    V.ATTEMPT_RUNNING: "saw {label} running",
    V.ATTEMPT_FAILED_TO_START: "could not start {label}",
    V.ARTIFACT_STORED: "kept {label}",
    V.EVALUATION_RECORDED: "recorded a score",
}
ON_HOME = sorted(set(WORDS) - {V.ATTEMPT_STARTED, V.ATTEMPT_RUNNING, V.ARTIFACT_STORED})


@dataclass(frozen=True, slots=True)
class EventLine:
    """What `parts/event.html` shows."""

    sentence: str
    moment: datetime
    reason: str = ""
    url: str = ""


def recent_changes(count: int = 6) -> list[EventLine]:
    return lines_of_events(list(AuditEvent.objects.filter(verb__in=ON_HOME).order_by("-sequence")[:count]))


def lines_of_events(events: list[AuditEvent], labels: dict[object, str] | None = None) -> list[EventLine]:
    """Sentences of events with their reasons; `labels` replaces the names of subjects that are better known by another."""
    bodies = dict(EventPayload.objects.filter(event__in=events).values_list("event_id", "body"))
    return [
        EventLine(
            sentence=sentence(event, plain((labels or {}).get(event.subject_id, event.subject_label))),
            moment=event.recorded_at,
            reason=str((bodies.get(event.pk) or {}).get("reason", "")),
        )
        for event in events
    ]


def sentence(event: AuditEvent, label: str) -> str:
    """`Anna launched train-0007`; a long name is cut."""
    label = label if len(label) <= LABEL_SHOWN else f"{label[: LABEL_SHOWN - 1]}…"
    words = WORDS.get(event.verb)
    actor = event.actor_label + (f" for {event.behalf_label}" if event.behalf_label else "")
    if words is None:
        return f"{actor}: {event.verb.replace('.', ' ').replace('_', ' ')} {label}".rstrip()
    return f"{actor} {words.replace('{label}', label or 'it')}"
