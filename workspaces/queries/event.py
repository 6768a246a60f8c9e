"""Reading the record: filters that say so when they name something unknown, pages by sequence, one event with all that it holds."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, TypeVar

from django.apps import apps
from django.db.models import Exists, Model, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce

from workspaces import ids
from workspaces.audit import Refusal
from workspaces.models import AuditEvent, EventPayload, EventSubject, NotFound, Row, User, Workspace
from workspaces.queries.event_words import sentence
from workspaces.queries.paging import BadCursor, Page
from workspaces.queries.workspace import find_workspace
from workspaces.verbs import Verb
from workspaces.windows import OUTSIDE_CALENDAR, clock_of

M = TypeVar("M", bound=Model)

# The record is read by sequence. An event has the time at which its command began, so one of a later time may stand before it, by as much as a
# command may take; so far around a span of days the walk goes.
LONGEST_COMMAND = timedelta(hours=1)
FILTERS = ("actor", "verb", "subject", "from", "to", "request")
NOUNS = tuple(dict.fromkeys(verb.value.partition(".")[0] for verb in Verb))


@dataclass(frozen=True, slots=True)
class Filters:
    """What of the record is wanted; empty fields want everything."""

    actor: str = ""
    verb: str = ""
    subject: str = ""
    since: datetime | None = None
    until: datetime | None = None
    request: str = ""


@dataclass(frozen=True, slots=True)
class Told:
    """An event as a page or a file tells it."""

    event: AuditEvent
    sentence: str
    reason: str
    details: dict[str, Any] = field(default_factory=dict)
    is_erased: bool = False


def filters_of(asked: Mapping[str, str], *, zone: str) -> Filters:
    """Read filters as a query string holds them; days are days of `zone`. Raises Refusal naming the first that cannot be."""
    verb = asked.get("verb", "").strip()
    if verb and verb not in NOUNS and verb not in [one.value for one in Verb]:
        raise Refusal(f"There is no verb {verb[:80]}; write one such as {Verb.RUN_ENDED}, or a noun: {', '.join(NOUNS)}.", field="verb")
    since, until = _moment(asked.get("from", ""), "from", zone), _moment(asked.get("to", ""), "to", zone)
    if since and until and since > until:
        raise Refusal("The span ends before it begins: “from” is later than “to”.", field="to")
    return Filters(
        actor=asked.get("actor", "").strip()[:200],
        verb=verb,
        subject=asked.get("subject", "").strip()[:300],
        since=since,
        until=until,
        request=asked.get("request", "").strip()[:64],
    )


def matching(filters: Filters) -> "QuerySet[AuditEvent]":
    """Events of the open workspace that match. Raises Refusal where an actor, a thing or a request is named that the record does not know."""
    rows = AuditEvent.objects.all()
    if filters.actor:
        done = _known(rows, _actor(filters.actor), _labelled(filters.actor, "actor_label", "behalf_label"))
        if done is None:
            raise Refusal(f"Nobody known as {filters.actor} has done anything here.", field="actor")
        rows = done
    if filters.verb:
        # Written out: behind row security no index serves the beginning of a text.
        rows = rows.filter(
            verb__in=[filters.verb] if "." in filters.verb else [verb for verb in Verb if verb.startswith(f"{filters.verb}.")]
        )
    if filters.subject:
        subjects = _known(EventSubject.objects.all(), _subject(filters.subject), _labelled(filters.subject, "label"))
        if subjects is None:
            raise Refusal(f"No event here changed anything known as {filters.subject}.", field="subject")
        rows = rows.filter(Exists(subjects.filter(event_id=OuterRef("pk"))))
    if filters.since:
        before = (
            AuditEvent.objects.filter(recorded_at__lt=_beside(filters.since, -LONGEST_COMMAND))
            .order_by("-recorded_at")
            .values("sequence")[:1]
        )
        rows = rows.filter(recorded_at__gte=filters.since, sequence__gt=Coalesce(Subquery(before), 0))
    if filters.until:
        after = (
            AuditEvent.objects.filter(recorded_at__gte=_beside(filters.until, LONGEST_COMMAND))
            .order_by("recorded_at")
            .values("sequence")[:1]
        )
        rows = rows.filter(recorded_at__lt=filters.until, sequence__lt=Coalesce(Subquery(after), 2**62))
    if filters.request:
        if not rows.filter(request_id=filters.request).exists():
            raise Refusal(f"No matching event came of the request {filters.request}.", field="request")
        rows = rows.filter(request_id=filters.request)
    return rows


def page_of_events(filters: Filters, *, cursor: str = "", size: int = 50) -> Page[Told]:
    """Matching events, newest first. The cursor is the sequence number of the last one seen. Raises BadCursor."""
    return newest(matching(filters), cursor=cursor, size=size)


def newest(rows: "QuerySet[AuditEvent]", *, cursor: str = "", size: int = 50) -> Page[Told]:
    """A page of some events, as `page_of_events` gives them."""
    if cursor:
        if not (cursor.isascii() and cursor.isdigit() and len(cursor) < 19):
            raise BadCursor("This cursor was not given out by labsite; begin again without one.")
        rows = rows.filter(sequence__lt=int(cursor))
    found = list(rows.order_by("-sequence")[: size + 1])
    shown = found[:size]
    return Page(items=told(shown), next=str(shown[-1].sequence) if len(found) > size else None)


def told(events: list[AuditEvent]) -> list[Told]:
    """Events with their sentences and reasons, in the order given."""
    payloads = dict(EventPayload.objects.filter(event_id__in=[event.pk for event in events]).values_list("event_id", "body"))
    return [_tell(event, payloads.get(event.pk)) for event in events]


@dataclass(frozen=True, slots=True)
class Neighbours:
    before: AuditEvent | None
    after: AuditEvent | None


def one_event(text: str) -> tuple[Told, list[EventSubject], Neighbours]:
    """One event by id or sequence number, what it changed, and the events beside it. NotFound where there is none here."""
    if text.isascii() and text.isdigit() and len(text) < 19:
        event = AuditEvent.objects.filter(sequence=int(text)).first()
        if event is None:
            raise NotFound("event")
    else:
        event = AuditEvent.objects.find(text)
    beside = {row.sequence: row for row in AuditEvent.objects.filter(sequence__in=[event.sequence - 1, event.sequence + 1])}
    subjects = list(EventSubject.objects.filter(event=event).order_by("position")[:500])
    return told([event])[0], subjects, Neighbours(before=beside.get(event.sequence - 1), after=beside.get(event.sequence + 1))


def _tell(event: AuditEvent, body: Any) -> Told:
    details = body.get("details", {}) if isinstance(body, dict) else {}
    reason = str(body.get("reason", "")) if isinstance(body, dict) else ""
    return Told(event=event, sentence=sentence(event, details), reason=reason, details=details, is_erased=body is None)


def _known(rows: "QuerySet[M]", exactly: Q, loosely: Q) -> "QuerySet[M] | None":
    """The rows that are meant: by their exact name or key, which indexes serve, else in whatever case it was written; None where there are none."""
    for meant in (exactly, loosely):
        found = rows.filter(meant)
        if found.exists():
            return found
    return None


def _actor(text: str) -> Q:
    key = ids.as_uuid(text) or User.objects.filter(username=text).values_list("pk", flat=True).first()
    named = Q(actor_label=text) | Q(behalf_label=text)
    return named | Q(actor_id=key) | Q(behalf_id=key) if key else named


def _subject(text: str) -> Q:
    named = Q(label=text)
    key = ids.as_uuid(text) or _key_of(text)
    return named | Q(object_id=key) if key else named


def _labelled(text: str, *columns: str) -> Q:
    """Any of the columns, whatever its case. It walks the table: row security lets no index serve it."""
    return Q(*((f"{column}__iexact", text) for column in columns), _connector=Q.OR)


def _key_of(text: str) -> uuid.UUID | None:
    """The key behind a canonical id such as `bench_go_fast_learning` or `run_<hex>`; of things that are gone, only the latter is known."""
    prefix, _, rest = text.partition("_")
    key = ids.as_uuid(rest)
    if key is not None:
        return key
    if prefix == Workspace.prefix:
        workspace = find_workspace(text)
        return workspace.pk if workspace else None
    for model in apps.get_models():
        if issubclass(model, Row) and model.prefix == prefix:
            try:
                return model.objects.find(text).pk
            except NotFound:
                return None
    return None


def _beside(moment: datetime, by: timedelta) -> datetime:
    """The moment so much earlier or later, or itself at the ends of all time."""
    try:
        return moment + by
    except OverflowError:
        return moment


def _moment(text: str, name: str, zone: str) -> datetime | None:
    """A day (`2026-05-03`, in the workspace's zone; as an end it is included) or a moment with its offset, as UTC."""
    text = text.strip()
    if not text:
        return None
    local = clock_of(zone)
    try:
        if len(text) == 10:
            day = date.fromisoformat(text) + timedelta(days=name == "to")
            return datetime.combine(day, time(), tzinfo=local).astimezone(UTC)
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=local)).astimezone(UTC)
    except OverflowError:
        raise Refusal(OUTSIDE_CALENDAR, field=name) from None
    except ValueError:
        raise Refusal(f"{text[:40]} is no day; write one such as 2026-05-03, or a moment such as 2026-05-03T10:00Z.", field=name) from None
