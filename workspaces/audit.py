"""The only kind of write: a command, with one permission, one durable transaction and exactly one event in the workspace's hash chain."""

import functools
import hashlib
import secrets
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Concatenate, ParamSpec, TypeVar

from django.contrib.postgres.functions import TransactionNow
from django.db import models, transaction
from django.db.models.functions import Now

from workspaces import ids, kept_query, kept_write, prepared, scope
from workspaces.access import Actor, Kind, Permission, rights_of
from workspaces.canonical import canonical, digest, plain, read_hash
from workspaces.models import ActorKind, AuditEvent, AuditHead, EventPayload, EventSubject, Workspace
from workspaces.verbs import Verb

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

NOTHING_YET = "0" * 64


class Denied(PermissionError):
    """The actor may not. Pages answer 403 (or 404 to strangers), the API problem+json; the attempt is recorded."""

    def __init__(self, permission: str, kind: str = "") -> None:
        super().__init__(f"This needs the right “{permission.replace('_', ' ')}”{f' for {kind}' if kind else ''} in this workspace.")
        self.permission = permission
        self.kind = kind


class Refusal(Exception):  # a rule said no; nothing went wrong
    """A rule says no. `reasons` are sentences that say what, the arithmetic and the way out; `field` names the input where it is one's fault.

    `denied` is for rules about who may (a word on one's own request): it names the right whose use was tried, and the attempt is recorded as
    one that a missing right denied.
    """

    def __init__(self, *reasons: str, field: str = "", certificate: str = "", denied: str = "") -> None:
        super().__init__(" ".join(reasons))
        self.reasons = reasons
        self.field = field
        self.certificate = certificate
        self.denied = denied


class TooMany(Refusal):
    """More than is allowed in a minute; `retry_seconds` from now one more is."""

    def __init__(self, words: str, *, retry_seconds: int) -> None:
        super().__init__(words)
        self.retry_seconds = retry_seconds


class Archived(Refusal):
    """The workspace is archived: it can be read, and nothing in it changed."""

    def __init__(self) -> None:
        super().__init__("This workspace is archived: everything in it can be read, nothing changed. Unarchive it first.")


@dataclass(slots=True)
class Subject:
    row: models.Model
    before_hash: str
    gone: tuple[uuid.UUID, str] | None = None  # key and label of a row that is being deleted
    after_hash: str = ""  # where it is known before the row is read

    @property
    def key(self) -> uuid.UUID:
        return self.gone[0] if self.gone else self.row.pk

    @property
    def label(self) -> str:
        return self.gone[1] if self.gone else label_of(self.row)


@dataclass(slots=True)
class Draft:
    """The event that a command is about to write; the body says what it changed."""

    verb: Verb
    details: dict[str, Any] = field(default_factory=dict)
    reason: str = ""
    subjects: list[Subject] = field(default_factory=list)  # each row once, with its hash before the command touched it
    about: models.Model | None = None  # what the event is about, where it is not the first thing that changed
    last_writes: kept_write.Writes | None = None  # of which the command reads nothing any more: they go with what the event asks
    ledger: Workspace | None = None  # the workspace's row, once this command holds the ledger's lock (workspaces/accounts.py)

    def created(self, *rows: models.Model) -> None:
        self.subjects.extend(Subject(row=row, before_hash="") for row in rows)

    def changing(self, *rows: models.Model, as_read: bool = False) -> None:
        """Call before the change: remembers the row's hash. `as_read`: they are as this transaction has read them under their locks."""
        places = self._places()
        fresh = [row for row in rows if (type(row), row.pk) not in places]
        for place in (places[type(row), row.pk] for row in rows if (type(row), row.pk) in places):
            self.subjects[place].after_hash = ""  # to be read again at the end
        hashes = {row.pk: read_hash(row) for row in fresh} if as_read else row_hashes(fresh)
        self.subjects.extend(Subject(row=row, before_hash=hashes.get(row.pk, "")) for row in fresh)

    def deleting(self, *rows: models.Model) -> None:
        """Call before the deletion: remembers key, label and hash."""
        self.changing(*rows)
        places = self._places()
        for row in rows:
            place = places[type(row), row.pk]
            self.subjects[place] = replace(self.subjects[place], gone=(row.pk, label_of(row)))

    def change(self, row: models.Model, **values: Any) -> None:
        """Set and save fields of one row, remembering before and after in the details."""
        self.change_together((row, values))

    def change_together(self, *changes: tuple[models.Model, Mapping[str, Any]], beside: kept_write.Writes | None = None) -> None:
        """As `change`, of several rows in one round trip; or put `beside` other writes, which the caller sends."""
        self.changing(*(row for row, _ in changes))
        writes = kept_write.Writes() if beside is None else beside
        for row, values in changes:
            before = {name: getattr(row, name) for name in values}
            for name, value in values.items():
                setattr(row, name, value)
            writes.update(row, list(values))
            self.note(row, {name: (before[name], value) for name, value in values.items()})
        if beside is None:
            writes.send()

    def note(self, row: models.Model, changed: Mapping[str, tuple[Any, Any]]) -> None:
        """Keep what fields of a row were before and are after, under `changed` and the row's own name: `{"run run_x": {"status": [a, b]}}`.
        A field that changes twice keeps what it was first; one that ends as it began is left out."""
        noted = self.details.setdefault("changed", {})
        fields = noted.setdefault(subject_name(row), {})
        for name, (before, after) in changed.items():
            first, last = fields.pop(name, [plain(before)])[0], plain(after)
            if first != last:
                fields[name] = [first, last]
        if not fields:
            del noted[subject_name(row)]
        if not noted:
            del self.details["changed"]

    def _places(self) -> dict[tuple[type[models.Model], Any], int]:
        return {(type(subject.row), subject.key): place for place, subject in enumerate(self.subjects)}


def command(
    verb: Verb,
    *,
    needs: Permission | None,
    kind: Kind | None = None,
    by_system: bool = False,
    public_reason: str = "",
    in_archive: str = "",
) -> Callable[[Callable[Concatenate[Draft, Parameters], Result]], Callable[Parameters, Result]]:
    """Make a function the one way to a write.

    The function takes the draft event, then keywords only, among them `actor`. `needs=None` is for commands of labsite's own jobs
    (`by_system`) and for the few whose right lies elsewhere (`public_reason` says where). In an archived workspace a command raises Archived,
    unless `in_archive` says why it has to work there too.
    """
    if needs is None and not by_system and not public_reason:
        raise TypeError("A command without a permission must say why.")

    def decorate(body: Callable[Concatenate[Draft, Parameters], Result]) -> Callable[Parameters, Result]:
        @functools.wraps(body)
        def run(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
            actor = kwargs["actor"]
            if not isinstance(actor, Actor):
                raise TypeError("A command wants an Actor.")
            workspace_id = scope.current_id()
            if scope.current().shared is not None:
                raise scope.ScopeError("What a share grant opened can be read, not written.")
            command_id = ids.uuid7()
            try:
                with transaction.atomic(durable=True), kept_query.asking_ahead():
                    was_archived = _tell_command(command_id, workspace_id)
                    check(actor, workspace_id, needs=needs, kind=kind, by_system=by_system, is_open=bool(public_reason))
                    if was_archived and not in_archive:
                        raise Archived
                    draft = Draft(verb=verb)
                    result = body(draft, *args, **kwargs)
                    write_event(draft, actor=actor, command_id=command_id, in_archive=bool(in_archive))
            except Refusal as refusal:
                if refusal.denied:
                    record_denial(actor=actor, permission=refusal.denied, kind=kind or "", where=f"{verb}: {refusal}")
                raise
            return result

        stated = {
            "verb": verb,
            "needs": needs,
            "kind": kind,
            "by_system": by_system,
            "public_reason": public_reason,
            "in_archive": in_archive,
        }
        setattr(run, "command", stated)
        return run

    return decorate


def check(actor: Actor, workspace_id: uuid.UUID, *, needs: Permission | None, kind: Kind | None, by_system: bool, is_open: bool) -> None:
    """Raise Denied unless the actor may; asked again inside the transaction, so that jobs, console and shell obey like pages do."""
    if actor.kind == ActorKind.SYSTEM:
        if not by_system:
            raise Denied("act as labsite itself", kind or "")
        return
    if needs is None:
        if not is_open:
            raise Denied("act as labsite itself", kind or "")
        return
    if not rights_of(actor, workspace_id).allows(needs, kind):
        raise Denied(needs, kind or "")


def write_event(draft: Draft, *, actor: Actor, command_id: uuid.UUID, in_archive: bool) -> AuditEvent:
    """Append the event to the workspace's chain, as the last thing of its command; its row lock on the head makes the sequence gapless.

    Under that lock the workspace's status is final: what began before the workspace was archived raises Archived here."""
    questions, tables = _row_questions(subject.row for subject in draft.subjects if not subject.gone and not subject.after_hash)
    asked = [kept_query.Question(_head, (), {}), kept_query.Question(_standing, (), {"key": scope.current_id()}), *questions]
    heads, [(now, status)], *stored = kept_query.ask_together(asked, after=draft.last_writes)
    head = next(iter(heads), None) or AuditHead.objects.create()
    if status == Workspace.Status.ARCHIVED and not in_archive:
        raise Archived
    first = draft.subjects[0] if draft.subjects else None
    if draft.about is not None:
        first = next((subject for subject in draft.subjects if subject.row is draft.about), Subject(row=draft.about, before_hash=""))
    body = {"details": plain(draft.details), "reason": draft.reason}
    salt = secrets.token_hex(32)
    event = AuditEvent(
        sequence=head.sequence + 1,
        actor_kind=actor.kind,
        actor_id=actor.user.pk if actor.user else None,
        actor_label=actor.label[:200],
        behalf_id=actor.behalf.pk if actor.behalf else None,
        behalf_label=actor.behalf.label[:200] if actor.behalf else "",
        verb=draft.verb,
        subject_type=type_name(first.row) if first else "",
        subject_id=first.key if first else None,
        subject_label=first.label if first else "",
        command_id=command_id,
        request_id=actor.request_id[:64],
        job_id=actor.job_id[:128],
        token_id=actor.token_id,
        payload_hash=payload_hash(salt, body),
        previous_hash=head.hash,
    )
    event.recorded_at = event.created_at = now
    hashes = _hashes(tables, stored)
    subjects = [
        kept_write.row_of(
            EventSubject,
            id=ids.uuid7(),
            workspace_id=event.workspace_id,
            event_id=event.pk,
            position=position,
            created_at=now,
            type=type_name(subject.row),
            object_id=subject.key,
            label=subject.label,
            before_hash=subject.before_hash,
            after_hash="" if subject.gone else subject.after_hash or hashes.get(subject.row.pk, ""),
        )
        for position, subject in enumerate(draft.subjects)
    ]
    event.hash = event_hash(event, subjects)
    head.sequence, head.hash = event.sequence, event.hash
    writes = kept_write.Writes()
    writes.insert([event])
    writes.insert([EventPayload(event=event, created_at=now, salt=salt, body=body)])
    writes.insert(subjects)
    writes.update(head, ["sequence", "hash"])
    for statement in _AT_THE_END:
        writes.then(statement)
    writes.send()
    return event


# --- Hashes: version 1 of the form. Canonical JSON (keys sorted, no blanks, UTF-8), times in UTC with microseconds, keys as hex ---------------

HASHED = {1: ("id", "workspace_id", "version", "sequence", "created_at", "recorded_at", "actor_kind", "actor_id", "actor_label", "behalf_id",
              "behalf_label", "verb", "subject_type", "subject_id", "subject_label", "command_id", "request_id", "job_id", "token_id",
              "payload_hash", "previous_hash")}  # fmt: skip
HASHED_SUBJECT = {1: ("id", "position", "type", "object_id", "label", "before_hash", "after_hash", "created_at")}


def event_hash(event: AuditEvent, subjects: list[EventSubject]) -> str:
    """SHA-256 over every stored column of the event and of its subjects, in the event's own version of the form."""
    stored = {name: getattr(event, name) for name in HASHED[event.version]}
    stored["subjects"] = [[getattr(subject, name) for name in HASHED_SUBJECT[event.version]] for subject in subjects]
    return digest(stored)


def payload_hash(salt: str, body: Any) -> str:
    """H(salt ‖ payload): keeps the chain verifiable after the payload is erased, and the payload unguessable."""
    return hashlib.sha256(salt.encode() + canonical(body)).hexdigest()


def row_hash(row: models.Model) -> str:
    """SHA-256 of a row as the database holds it now; empty where the row is gone."""
    return row_hashes([row]).get(row.pk, "")


def row_hashes(rows: Iterable[models.Model]) -> dict[Any, str]:
    """Hashes of rows by key, one query a table: an event may be about thousands of them. Rows that are gone have none."""
    questions, tables = _row_questions(rows)
    return _hashes(tables, kept_query.ask_together(questions))


def _row_questions(rows: Iterable[models.Model]) -> tuple[list[kept_query.Question], list[type[models.Model]]]:
    keys: dict[type[models.Model], set[Any]] = {}
    for row in rows:
        keys.setdefault(type(row), set()).add(row.pk)
    return [kept_query.Question(_by_keys, (model,), {"keys": [*wanted]}) for model, wanted in keys.items()], [*keys]


def _hashes(tables: Iterable[type[models.Model]], found: Iterable[list[dict[str, Any]]]) -> dict[Any, str]:
    return {stored[model._meta.pk.attname]: digest(stored) for model, rows in zip(tables, found, strict=True) for stored in rows}


def _by_keys(model: type[models.Model], keys: Any) -> "models.QuerySet[Any, dict[str, Any]]":
    """The rows as the database holds them."""
    return model._base_manager.filter(pk=keys).values()


def _head() -> "models.QuerySet[AuditHead]":
    return AuditHead.objects.select_for_update(no_key=True)


def _standing(key: Any) -> "models.QuerySet[Any, Any]":
    """The transaction's instant, and the workspace's status as it is now."""
    return Workspace.objects.filter(pk=key).values_list(TransactionNow(), "status")


def type_name(row: models.Model) -> str:
    return str(row._meta.model_name)


def subject_name(row: models.Model) -> str:
    """How an event's details name a row: its type and its canonical id, `pool pool_local`."""
    return f"{type_name(row)} {getattr(row, 'public_id', None) or plain(row.pk)}"


def label_of(row: models.Model) -> str:
    """How the record names a thing after it is gone."""
    for name in ("label", "name", "slug"):
        value = getattr(row, name, "")
        if value:
            return str(value)[:300]
    return str(row)[:300]


_IS_ARCHIVED = f"(SELECT status = '{Workspace.Status.ARCHIVED}' FROM {Workspace._meta.db_table} WHERE id = %s)"  # noqa: S608  # two names of ours
_TELL_COMMAND = f"SELECT set_config('lab.command', %s, true), {_IS_ARCHIVED}"


# The triggers have their say under the command's id, and then there is none.
_AT_THE_END = ("SET CONSTRAINTS ALL IMMEDIATE", "SET CONSTRAINTS ALL DEFERRED", "SELECT set_config('lab.command', '', true)")


def _tell_command(command_id: uuid.UUID, workspace_id: uuid.UUID) -> bool:
    """Tell the triggers under which command rows change; answers whether the workspace is archived."""
    with prepared.sent([(_TELL_COMMAND, [str(command_id), workspace_id])]) as cursor:
        return bool(cursor.fetchone()[1])


# --- Denials ------------------------------------------------------------------------------------------------------------------------------

DENIALS_A_MINUTE = 10


def record_denial(*, actor: Actor, permission: str, kind: str, where: str) -> None:
    """Write `access.denied` in a transaction of its own; at most ten a minute and actor, so that noise cannot fill the record."""
    if denials_of(actor.user.pk if actor.user else None).count() >= DENIALS_A_MINUTE:
        return
    _deny(actor=actor, permission=permission, kind=kind, where=where)


def denials_of(actor_id: uuid.UUID | None) -> "models.QuerySet[AuditEvent]":
    """What the open workspace denied an actor in the last minute, by the database's clock."""
    since = Now() - timedelta(minutes=1)
    return AuditEvent.objects.filter(verb=Verb.ACCESS_DENIED, actor_id=actor_id, recorded_at__gte=since)


@command(
    Verb.ACCESS_DENIED,
    needs=None,
    by_system=True,
    public_reason="whoever was denied leaves this trace",
    in_archive="what is tried in an archive is on record like anywhere",
)
def _deny(event: Draft, *, actor: Actor, permission: str, kind: str, where: str) -> None:
    event.details = {"permission": permission, "kind": kind, "where": where[:300]}
