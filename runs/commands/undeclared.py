"""What a run has read and not declared, as its lines tell: part of the command that ends the run."""

import hashlib
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet, Window
from django.db.models.functions import DenseRank

from runs.models import Artifact, Run, RunLine, UndeclaredInput
from workspaces import kept_query
from workspaces.audit import Draft
from workspaces.models import DatasetFile, DatasetVersion

MOST = 100  # of one run
MOST_LINKS = 1_000  # of one run, to the versions that hold what it read
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
    told = [one for one in said if one.sha256 not in known and known.isdisjoint(copies.get(one.sha256, ()))]
    things, linked = [], set()
    for one in told[:MOST]:
        found = copies.get(one.sha256, [Copy()])
        # Told under two names, it is linked to all that have it but once.
        things.append((one, found[:1] if one.sha256 in linked else found))
        linked.add(one.sha256)
    links = [(nth, one, copy) for one, found in things for nth, copy in enumerate(found)]
    links.sort(key=lambda link: link[0])  # where there are too many, of each thing the newest
    kept = [
        UndeclaredInput(
            run=run,
            kind=one.kind,
            uri=one.uri[:1000],
            what=one.what[:250],
            sha256=one.sha256,
            dataset_version_id=copy.dataset_version_id,
            artifact_id=copy.artifact_id,
        )
        for _, one, copy in links[:MOST_LINKS]
    ]
    UndeclaredInput.objects.bulk_create(kept)
    event.created(*kept)
    if kept:
        event.details["undeclared_inputs"] = len(things)
    if len(told) > MOST:
        event.details["undeclared_inputs_not_kept"] = len(told) - MOST
    if len(links) > MOST_LINKS or sum(map(len, copies.values())) > MOST_LINKS:
        event.details["undeclared_links_at_most"] = MOST_LINKS  # older versions with the same content are not reached
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
    """What of this workspace has the content: each version as a whole, each with such a file, newest first; else the newest artifact of another run.
    A withdrawal or an egress class of the oldest reaches the run as that of the newest does. One more than MOST_LINKS are looked for, of each content
    alike."""
    found: dict[str, list[Copy]] = {}
    if not hashes:
        return found
    whole = DatasetVersion.objects.filter(content_hash__in=hashes).order_by("-created_at", "-pk")
    newest = Window(DenseRank(), partition_by="blob__sha256", order_by=("-version__created_at", "-version_id"))
    parts = DatasetFile.objects.filter(blob__sha256__in=hashes).annotate(nth=newest).order_by("nth", "blob__sha256")
    of_files = parts.values_list("version_id", "blob__sha256", "nth").distinct()[: MOST_LINKS + 1]
    for version, sha256 in [*whole.values_list("pk", "content_hash")[: MOST_LINKS + 1], *((one, sha256) for one, sha256, _ in of_files)]:
        copies = found.setdefault(sha256, [])
        if Copy(version) not in copies:
            copies.append(Copy(version))
    artifacts = Artifact.objects.filter(blob__sha256__in=hashes - found.keys()).exclude(run=run).order_by("-created_at", "-pk")
    for artifact, sha256 in artifacts.values_list("pk", "blob__sha256")[: 10 * MOST]:
        found.setdefault(sha256, [Copy(None, artifact)])
    return found
