"""Is the record whole? Recomputes a workspace's chain from what the database holds and compares it with the signed checkpoints.

Faults are sentences; the first one is kept. What is not covered: events after the last checkpoint could be rewritten by who owns the
database and knows the form of the hash; the result says how many those are (`tail`).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Protocol

from django.db.models import Q

from workspaces import checkpoint, scope
from workspaces.audit import NOTHING_YET, event_hash, payload_hash
from workspaces.checkpoint import Checkpoint
from workspaces.models import AuditEvent, AuditHead, EventPayload, EventSubject
from workspaces.queries import finding
from workspaces.queries.finding import Finding

_AT_ONCE = 500  # events held in memory
_WHOLE_AGAIN = timedelta(hours=1)  # after which sealing walks the whole chain and not only what is new
LONG = 50_000  # events; about ten seconds. Longer chains are for `manage.py verify`


class Broken(Exception):  # the answer of a check, not a fault of ours
    """The chain does not hold; the message says where and how."""


@dataclass(frozen=True, slots=True)
class Position:
    """A place in a chain: so many events, the last of them with this hash."""

    count: int = 0
    head: str = NOTHING_YET


@dataclass(frozen=True, slots=True)
class Verification:
    events: int
    head: str
    erased_payloads: int
    checkpoints: int
    unreadable_lines: int
    sealed: int
    sealed_at: datetime | None
    fault: str = ""

    @property
    def is_whole(self) -> bool:
        return not self.fault

    @property
    def tail(self) -> int:
        """Events after the last checkpoint."""
        return max(0, self.events - self.sealed)


class Walk:
    """One pass over the chain of the open workspace, from a position onwards; raises Broken at the first fault."""

    def __init__(self, start: Position | None = None) -> None:
        self.at = start or Position()
        self.erased_payloads = 0

    def __iter__(self) -> Iterator[Position]:
        """Yields the position after each event. Events that are added meanwhile are walked as well."""
        while True:
            found = False
            for event, subjects, payload in _events_after(self.at.count):
                found = True
                self._check(event, subjects, payload)
                self.at = Position(count=event.sequence, head=event.hash)
                yield self.at
            head = AuditHead.objects.first()
            stated = Position(count=head.sequence, head=head.hash) if head else Position()
            if stated.count > self.at.count and found:
                continue  # grown while we looked
            if stated.count > self.at.count and AuditEvent.objects.filter(sequence__gt=self.at.count).exists():
                continue
            if stated.count != self.at.count:
                raise Broken(f"The head counts {stated.count} events, and the last one here is number {self.at.count}.")
            if stated.head != self.at.head:
                raise Broken(f"The head does not name the hash of event {self.at.count}, the last one.")
            return

    def _check(self, event: AuditEvent, subjects: list[EventSubject], payload: EventPayload | None) -> None:
        expected = self.at.count + 1
        if event.sequence != expected:
            raise Broken(f"Event {expected} is missing: event {event.sequence} follows event {self.at.count}.")
        if event.previous_hash != self.at.head:
            raise Broken(f"Event {event.sequence} does not follow the event before it: its previous hash is another one.")
        _refuse_changed(event, subjects, payload)
        self.erased_payloads += payload is None


def _refuse_changed(event: AuditEvent, subjects: list[EventSubject], payload: EventPayload | None) -> None:
    try:
        computed = event_hash(event, subjects)
    except KeyError:
        raise Broken(f"Event {event.sequence} says version {event.version} of the hash's form, which there is not.") from None
    if computed != event.hash:
        raise Broken(f"Event {event.sequence} ({event.verb}) was changed: its hash does not match what is stored.")
    if payload is not None and payload_hash(payload.salt, payload.body) != event.payload_hash:
        raise Broken(f"The payload of event {event.sequence} ({event.verb}) was changed: its hash does not match.")


def _events_after(count: int) -> Iterator[tuple[AuditEvent, list[EventSubject], EventPayload | None]]:
    sequence, last_id = count, None
    while True:
        after = Q(sequence__gt=sequence)
        if last_id is not None:
            after |= Q(sequence=sequence, pk__gt=last_id)
        elif count == 0:
            after |= Q(sequence__lte=0)  # none may stand before the first
        events = list(AuditEvent.objects.filter(after).order_by("sequence", "pk")[:_AT_ONCE])
        yield from _with_parts(events)
        if len(events) < _AT_ONCE:
            return
        sequence, last_id = events[-1].sequence, events[-1].pk


def _with_parts(events: list[AuditEvent]) -> Iterator[tuple[AuditEvent, list[EventSubject], EventPayload | None]]:
    keys = [event.pk for event in events]
    payloads = {payload.event_id: payload for payload in EventPayload.objects.filter(event_id__in=keys)}
    subjects: dict[object, list[EventSubject]] = {}
    for subject in EventSubject.objects.filter(event_id__in=keys).order_by("position", "pk"):
        subjects.setdefault(subject.event_id, []).append(subject)
    for event in events:
        yield event, subjects.get(event.pk, []), payloads.get(event.pk)


def verify_chain() -> Verification:
    """Walk the whole chain of the open workspace and hold it against its checkpoints: one pass, a few hundred events in memory.

    What it finds is noted for the pages that only say how the record stands.
    """
    name = checkpoint.name_of(scope.current_id())
    result = compare(name, Walk())
    finding.note(name, count=result.events, fault=result.fault)
    return result


def check_events(events: list[AuditEvent]) -> str:
    """Recompute events that are about to be shown: the first fault among them as a sentence, noted as well; "" where they hold.

    Neighbours in the chain are held against each other; what stands between others is not looked at.
    """
    try:
        for event, subjects, payload in _with_parts(events):
            _refuse_changed(event, subjects, payload)
        ordered = sorted(events, key=lambda event: event.sequence)
        for before, after in pairwise(ordered):
            if after.sequence == before.sequence + 1 and after.previous_hash != before.hash:
                raise Broken(f"Event {after.sequence} does not follow the event before it: its previous hash is another one.")
    except Broken as fault:
        finding.note(checkpoint.name_of(scope.current_id()), count=len(events), fault=str(fault))
        return str(fault)
    return ""


def last_finding() -> Finding | None:
    """What the last look at the open workspace's record found: a file is read, no query is made."""
    return finding.found(checkpoint.name_of(scope.current_id()))


class Walked(Protocol):
    """A pass over a chain, of a workspace or of the site."""

    at: Position
    erased_payloads: int

    def __iter__(self) -> Iterator[Position]: ...


def compare(name: str, walk: Walked) -> Verification:
    """Finish `walk`, meeting every checkpoint of the chain `name` at its count."""
    checkpoints, unreadable = checkpoint.read(name)
    fault = ""
    try:
        _refuse_forged(checkpoints, name)
        waiting = sorted(checkpoints, key=lambda one: one.count, reverse=True)
        for position in walk:
            while waiting and waiting[-1].count <= position.count:
                _meet(waiting.pop(), position)
        if waiting:
            raise Broken(
                f"The checkpoint of {waiting[-1].time} counted {waiting[-1].count} events, and there are {walk.at.count}: "
                f"at least {waiting[-1].count - walk.at.count} were removed."
            )
    except Broken as found:
        fault = str(found)
    newest = checkpoints[-1] if checkpoints else None
    return Verification(
        events=walk.at.count,
        head=walk.at.head,
        erased_payloads=walk.erased_payloads,
        checkpoints=len(checkpoints),
        unreadable_lines=unreadable,
        sealed=newest.count if newest else 0,
        sealed_at=newest.at if newest else None,
        fault=fault,
    )


def _refuse_forged(checkpoints: list[Checkpoint], name: str) -> None:
    key = checkpoint.public_key()
    before = 0
    for number, one in enumerate(checkpoints, start=1):
        if one.workspace != name:
            raise Broken(f"Checkpoint {number} belongs to another chain.")
        if not one.is_signed(key):
            raise Broken(f"Checkpoint {number} of {one.time} is not signed by the key of this installation.")
        if one.count < before:
            raise Broken(f"Checkpoint {number} counts {one.count} events, fewer than the {before} of the one before.")
        before = one.count


def _meet(one: Checkpoint, position: Position) -> None:
    if one.count != position.count or one.head != position.head:
        raise Broken(f"The record was rewritten: the checkpoint of {one.time} names another hash for event {one.count}.")


@dataclass(frozen=True, slots=True)
class Badge:
    """What a page can say cheaply: the head against the last checkpoint and what was found last, without recomputing anything."""

    events: int
    sealed: int
    sealed_at: datetime | None
    fault: str = ""
    verified: int = 0  # events of the last whole verification that found no fault
    verified_at: datetime | None = None

    @property
    def tail(self) -> int:
        return max(0, self.events - self.sealed)

    @property
    def newer(self) -> int:
        """Events since the last verification."""
        return max(0, self.events - self.verified)


def badge() -> Badge:
    """The head of the open workspace's chain, whether the last checkpoint still names the event it sealed, and the last finding."""
    head = AuditHead.objects.first()
    events = head.sequence if head else 0
    noted = last_finding()
    known = Badge(
        events=events,
        sealed=0,
        sealed_at=None,
        fault=noted.fault if noted else "",
        verified=noted.count if noted and not noted.fault else 0,
        verified_at=noted.at if noted and not noted.fault else None,
    )
    newest = checkpoint.last(checkpoint.name_of(scope.current_id()))
    if newest is None:
        return known
    sealed = AuditEvent.objects.filter(sequence=newest.count).values_list("hash", flat=True).first()
    fault = ""
    if not newest.is_signed(checkpoint.public_key()):
        fault = "The last checkpoint is not signed by the key of this installation."
    elif newest.count > events:
        fault = f"The last checkpoint counted {newest.count} events, and the head counts {events}."
    elif sealed != newest.head:
        fault = f"Event {newest.count} does not bear the hash that was sealed."
    return replace(known, sealed=newest.count, sealed_at=newest.at, fault=fault or known.fault)


def seal() -> Checkpoint | None:
    """Add a signed checkpoint for the open workspace, after recomputing what came since the last one; None where nothing has happened.

    Raises Broken rather than sign what does not hold, and notes the fault. Once an hour the whole of a chain that is not too long is
    recomputed as well, for the note only: a fault far back must not leave what is new without a signature.
    """
    name, noted = checkpoint.name_of(scope.current_id()), last_finding()
    if (noted is None or datetime.now(UTC) - noted.at >= _WHOLE_AGAIN) and not AuditEvent.objects.filter(sequence__gt=LONG).exists():
        verify_chain()

    def grown(newest: Checkpoint | None) -> tuple[int, str] | None:
        start = Position(count=newest.count, head=newest.head) if newest else Position()
        walk = Walk(start)
        for _ in walk:
            pass
        return (walk.at.count, walk.at.head) if walk.at.count > start.count else None

    try:
        return checkpoint.append(name, grown)
    except Broken as fault:
        finding.note(name, count=noted.count if noted else 0, fault=str(fault))
        raise
