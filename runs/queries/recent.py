"""The record as sentences on the pages of work. The audit page has every column and filter."""

import copy
from dataclasses import dataclass
from datetime import datetime

from runs.terminal import plain
from workspaces.models import AuditEvent, EventPayload
from workspaces.queries.event_words import sentence

LABEL_SHOWN = 60  # characters of a subject's name


@dataclass(frozen=True, slots=True)
class EventLine:
    """What `parts/event.html` shows."""

    sentence: str
    moment: datetime
    reason: str = ""
    url: str = ""


def lines_of_events(events: list[AuditEvent]) -> list[EventLine]:
    """Sentences of events with their reasons, by one more query."""
    bodies = dict(EventPayload.objects.filter(event__in=events).values_list("event_id", "body"))
    return [line_of(event, bodies.get(event.pk) or {}) for event in events]


def line_of(event: AuditEvent, body: dict[str, object]) -> EventLine:
    """The sentence of one event, whose payload is at hand."""
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
