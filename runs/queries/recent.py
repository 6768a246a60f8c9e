"""The record as sentences on the pages of work: what changed lately, what changed one run. The audit page has every column and filter."""

import copy
from dataclasses import dataclass
from datetime import datetime

from runs.terminal import plain
from workspaces.models import AuditEvent, EventPayload
from workspaces.queries.event_words import sentence
from workspaces.verbs import Verb

LABEL_SHOWN = 60  # characters of a subject's name
# every run makes them; they would drown the rest
SILENT = {Verb.ATTEMPT_STARTED, Verb.ATTEMPT_RUNNING, Verb.ATTEMPT_ENDED, Verb.ARTIFACT_STORED}
NOUNS = (
    "objective",
    "benchmark",
    "contract",
    "dataset",
    "dataset_version",
    "agent",
    "agent_version",
    "pool",
    "limit",
    "approval",
    "launch",
    "run",
)
# What everybody with a right to look may see on the home page: what was registered, launched, decided and given.
ON_HOME = sorted(verb for verb in Verb if verb.partition(".")[0] in (*NOUNS, "evaluation", "attempt") and verb not in SILENT)


@dataclass(frozen=True, slots=True)
class EventLine:
    """What `parts/event.html` shows."""

    sentence: str
    moment: datetime
    reason: str = ""
    url: str = ""


def recent_changes(count: int = 6) -> list[EventLine]:
    return lines_of_events(list(AuditEvent.objects.filter(verb__in=ON_HOME).order_by("-sequence")[:count]))


def lines_of_events(events: list[AuditEvent]) -> list[EventLine]:
    """Sentences of events with their reasons, by one more query."""
    bodies = dict(EventPayload.objects.filter(event__in=events).values_list("event_id", "body"))
    return [_line(event, bodies.get(event.pk) or {}) for event in events]


def _line(event: AuditEvent, body: dict[str, object]) -> EventLine:
    shown = copy.copy(event)
    shown.subject_label = _short(plain(event.subject_label))
    details = body.get("details")
    return EventLine(
        sentence=sentence(shown, details if isinstance(details, dict) else None),
        moment=event.recorded_at,
        reason=str(body.get("reason") or ""),
    )


def _short(label: str) -> str:
    return label if len(label) <= LABEL_SHOWN else f"{label[: LABEL_SHOWN - 1]}…"
