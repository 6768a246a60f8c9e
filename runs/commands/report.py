"""What a run reports about itself through the API, with its own token: points and lines (telemetry), and artifacts (a command)."""

import uuid
from dataclasses import replace
from typing import Any

from django.db import transaction
from django.db.models import Max

from runs import ingest
from runs.commands.harvest import OWN_PATHS
from runs.commands.withdrawal import spread
from runs.lifecycle import OPEN_ATTEMPTS
from runs.models import Artifact, Attempt, Run, RunLine, Watch
from runs.pools.events import Event, read_event
from runs.pools.lines import Point
from runs.pools.sampling import PREFIX
from runs.pools.values import MalformedError, check_text
from runs.queries.secret import redactor_of
from workspaces import ids, scope
from workspaces.access import Actor, Kind, Permission, rights_of
from workspaces.accounts import lock_ledger
from workspaces.audit import Denied, Draft, Refusal, command
from workspaces.commands.blob import StoredFile, keep_blobs
from workspaces.verbs import Verb


def report_points(*, actor: Actor, run: Run, points: list[Point]) -> int:
    """Append metric points; returns how many were taken: none of a series that is one too many. Telemetry: no event of audit."""
    attempt = own_attempt(actor, run)
    for number, point in enumerate(points):
        if point.key.startswith(PREFIX):
            words = f"Point {number + 1}: keys below {PREFIX} are what labsite measures; choose another."
            raise Refusal(words, field=f"points.{number}.key")
    redactor = redactor_of(attempt)
    points = [replace(point, key=redactor.blot_text(point.key)) for point in points]
    with transaction.atomic():
        Watch.objects.select_for_update(no_key=True).get(attempt=attempt)
        own_attempt(actor, run)  # its end takes the same lock: what comes after it is refused, not lost
        return len(points) - ingest.add_points(run, points, attempt_number=attempt.number)


def report_events(*, actor: Actor, run: Run, bodies: list[dict[str, Any]]) -> int:
    """Append event lines, each checked like a line of events.jsonl; one bad line refuses all, naming it."""
    attempt = own_attempt(actor, run)
    redactor = redactor_of(attempt)
    found: list[Event] = []
    for number, body in enumerate(bodies, start=1):
        try:
            if ingest.is_too_deep(body):
                raise MalformedError(f"nested deeper than {ingest.MAX_DEPTH}")
            check_text(body)
            found.append(redactor.blot_fields(read_event(body)))
        except (MalformedError, ValueError, RecursionError) as error:
            raise Refusal(f"Event {number}: {error}.", field=f"events.{number - 1}") from error
    with transaction.atomic():
        watch = Watch.objects.select_for_update(no_key=True).get(attempt=attempt)
        own_attempt(actor, run)  # its end takes the same lock: what comes after it is refused, not lost
        sent = RunLine.objects.filter(attempt=attempt, number__gte=ingest.API_LINES).aggregate(last=Max("number"))["last"]
        last = sent or ingest.API_LINES
        if last + len(found) > ingest.API_LINES + ingest.MAX_LINES:
            raise Refusal(f"An attempt may send {ingest.MAX_LINES:,} events here; write further ones to events.jsonl in its folder.")
        ingest.add_lines(watch, attempt, [(last + offset, event) for offset, event in enumerate(found, start=1)])
    return len(found)


@command(
    Verb.ARTIFACT_STORED,
    needs=None,
    public_reason="the token of the one run, or whoever asked for it and may launch, checked first thing",
    in_archive="a run that was let go on keeps what it makes",
)
def store_artifact(
    event: Draft,
    *,
    actor: Actor,
    run: Run,
    file: StoredFile,
    name: str,
    kind: str,
    id: uuid.UUID | None = None,  # noqa: A002  # the word of the column
) -> Artifact:
    """Keep a file that a run has sent while it runs, or whoever asked for it; the event says which."""
    lock_ledger()
    attempt = sending_attempt(
        actor, Run.objects.select_for_update(no_key=True).get(pk=run.pk)
    )  # locked: its end takes this artifact with it
    redactor = redactor_of(attempt)
    file, name, kind = replace(file, path=redactor.blot_text(file.path)), redactor.blot_text(name), redactor.blot_text(kind)
    refuse_path(run, file.path)
    blob = keep_blobs(event, [file])[file.sha256]
    artifact = Artifact.objects.create(
        id=id or ids.uuid7(), run=run, path=file.path, name=name[:250] or file.path.rsplit("/", 1)[-1], kind=kind[:40] or "file", blob=blob
    )
    event.created(artifact)
    spread(event, run)  # what it has read may be withdrawn already
    return artifact


def sending_attempt(actor: Actor, run: Run) -> Attempt:
    """The open attempt of the run that the actor sends files for: by the run's token, or as the person who asked for it and may launch still."""
    if actor.run_id is not None:
        return own_attempt(actor, run)
    is_theirs = actor.user is not None and actor.user.pk == run.requested_by_id
    if not is_theirs or not rights_of(actor, scope.current_id()).allows(Permission.LAUNCH_RUN, Kind.ARTIFACT):
        raise Denied("write to this run")
    return _open_attempt(run)


def refuse_path(run: Run, path: str) -> None:
    """Refuses a path under which a run may keep nothing more."""
    if path.startswith(OWN_PATHS):
        raise Refusal(f"Paths below {OWN_PATHS} are labsite's own; choose another.", field="path")
    if Artifact.objects.filter(run=run, path=path).exists():
        raise Refusal(f"{path} is kept already; an artifact is not overwritten.", field="path")


def own_attempt(actor: Actor, run: Run) -> Attempt:
    """The open attempt of the run that the token belongs to."""
    own: uuid.UUID | None = actor.run_id
    if own != run.pk:
        raise Denied("write to this run")
    return _open_attempt(run)


def _open_attempt(run: Run) -> Attempt:
    attempt = Attempt.objects.filter(run=run, status__in=sorted(OPEN_ATTEMPTS)).first()
    if attempt is None:
        raise Refusal(f"{run.name} is not running; it takes no more reports.")
    return attempt
