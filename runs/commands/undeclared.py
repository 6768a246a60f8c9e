"""What a run has read and not declared, as its lines tell: part of the command that ends the run."""

import hashlib
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from runs.models import Artifact, Run, RunLine, UndeclaredInput
from workspaces import kept_query
from workspaces.audit import Draft
from workspaces.models import DatasetFile, DatasetVersion

MOST = 100  # of one run
MOST_COPIES = 5  # versions that one content is linked to where several hold it, the newest
TELL = ("input", "memory_read", "api_spend")  # lines that tell of a reading
NAMES = ("uri", "sha256", "what", "entry")
FIELDS = [f"body__{name}" for name in NAMES]
NOTHING = hashlib.sha256(b"").hexdigest()  # every empty file is alike, and says nothing of where it came from
Kind = UndeclaredInput.Kind


@dataclass(frozen=True, slots=True)
class Said:
    kind: str
    uri: str
    what: str = ""
    sha256: str = ""


@dataclass(frozen=True, slots=True)
class Copy:
    """Something of this workspace that has the content."""

    dataset_version_id: uuid.UUID | None = None
    artifact_id: uuid.UUID | None = None


def note_undeclared(event: Draft, run: Run) -> list[UndeclaredInput]:
    """Keep what the run's lines say that it read besides its inputs, and return it. Content that it had declared, or has made itself, is not
    noted, whatever it is called."""
    said = _said(run)
    if not said:
        return []
    hashes = {one.sha256 for one in said} - {"", NOTHING}
    copies = _copies(hashes, run)
    known = _known(run, hashes)
    rows = [
        UndeclaredInput(
            run=run,
            kind=one.kind,
            uri=one.uri[:1000],
            what=one.what[:250],
            sha256=one.sha256,
            dataset_version_id=copy.dataset_version_id,
            artifact_id=copy.artifact_id,
        )
        for one in said
        if one.sha256 not in known and known.isdisjoint(copies.get(one.sha256, ()))
        for copy in copies.get(one.sha256, [Copy()])
    ]
    kept = rows[:MOST]
    UndeclaredInput.objects.bulk_create(kept)
    event.created(*kept)
    if kept:
        event.details["undeclared_inputs"] = len(kept)
    if len(rows) > MOST:
        event.details["undeclared_inputs_not_kept"] = len(rows) - MOST
    return kept


def what_lines_tell(run: Run) -> kept_query.Question:
    """What `note_undeclared` asks first, for one who asks for more in the same round trip."""
    return kept_query.Question(_lines, (), {"run": run.pk})


def _said(run: Run) -> list[Said]:
    """What the lines of all its attempts tell, each thing but once; one query, at the end of every run."""
    return [_of(kind, dict(zip(NAMES, values, strict=True))) for kind, *values in kept_query.ask_together([what_lines_tell(run)])[0]]


def _lines(run: Any) -> "QuerySet[Any, Any]":
    lines = RunLine.objects.filter(attempt__run=run, type__in=TELL).order_by("type", *FIELDS)
    return lines.values_list("type", *FIELDS).distinct()[: MOST + 1]


def _of(kind: str, body: dict[str, Any]) -> Said:
    uri, sha256, what, entry = (str(body[name] or "") for name in NAMES)
    match kind:
        case "memory_read":
            return Said(Kind.MEMORY, entry)
        case "api_spend":
            return Said(Kind.SERVICE, what, "" if what else "a service that it did not name")
    return Said(Kind.INPUT, uri, what, sha256)


def _known(run: Run, hashes: Iterable[str]) -> set[str | Copy]:
    """What the run had declared, and what it has made itself: by content, and by what holds the content."""
    known: set[str | Copy] = set(Artifact.objects.filter(run=run, blob__sha256__in=hashes).values_list("blob__sha256", flat=True))
    for version, artifact, sha256 in run.inputs.values_list("dataset_version_id", "artifact_id", "sha256"):
        known |= {sha256, Copy(version, artifact)}
    return known


def _copies(hashes: set[str], run: Run) -> dict[str, list[Copy]]:
    """What of this workspace has the content: a version as a whole, versions with such a file, else the newest artifact of another run."""
    found: dict[str, list[Copy]] = {}
    if not hashes:
        return found
    whole = DatasetVersion.objects.filter(content_hash__in=hashes).order_by("-created_at", "-pk")
    parts = DatasetFile.objects.filter(blob__sha256__in=hashes).order_by("-version__created_at", "-version_id")
    for version, sha256 in [*whole.values_list("pk", "content_hash"), *parts.values_list("version_id", "blob__sha256")[: 10 * MOST]]:
        copies = found.setdefault(sha256, [])
        if Copy(version) not in copies and len(copies) < MOST_COPIES:
            copies.append(Copy(version))
    artifacts = Artifact.objects.filter(blob__sha256__in=hashes - found.keys()).exclude(run=run).order_by("-created_at", "-pk")
    for artifact, sha256 in artifacts.values_list("pk", "blob__sha256")[: 10 * MOST]:
        found.setdefault(sha256, [Copy(None, artifact)])
    return found
