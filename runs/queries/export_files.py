"""Whose content an export carries, and why some is left out. What is closed wins: a file that a restricted dataset has never travels."""

import shutil
import uuid
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db.models import Count, Exists, OuterRef, Q, QuerySet, Sum

from runs.models import Artifact, Export
from runs.queries.egress import runs_that_read
from workspaces.models import AgentFile, Blob, Dataset, DatasetFile, DatasetPiece

Egress = Dataset.Egress
CLASSES: dict[str, tuple[str, ...]] = {
    Export.Files.NONE: (),
    Export.Files.PUBLIC: (Egress.PUBLIC,),
    Export.Files.INTERNAL: (Egress.PUBLIC, Egress.INTERNAL),
}
ROWS_BYTES = 64 * 1024 * 1024  # kept free for rows, whose size nobody knows before


@dataclass(frozen=True, slots=True)
class Choice:
    """What one choice would carry."""

    value: str
    label: str
    files: int
    bytes: int


def carried(files: str, closed_runs: Collection[uuid.UUID]) -> "QuerySet[Blob]":
    """Stored files that travel, by hash. Code of agents always does; artifacts are of the class internal at least."""
    wanted = Q(Exists(AgentFile.objects.filter(blob=OuterRef("pk"))))
    classes = CLASSES[files]
    if classes:
        wanted |= Q(Exists(DatasetFile.objects.filter(blob=OuterRef("pk"), version__dataset__egress__in=classes)))
        wanted |= Q(Exists(DatasetPiece.objects.filter(blob=OuterRef("pk"), dataset__egress__in=classes)))
    if Egress.INTERNAL in classes:
        wanted |= Q(Exists(Artifact.objects.filter(blob=OuterRef("pk"), deleted_at=None).exclude(run__in=closed_runs)))
    closed = Q(Exists(DatasetFile.objects.filter(blob=OuterRef("pk"), version__dataset__egress=Egress.RESTRICTED)))
    closed |= Q(Exists(DatasetPiece.objects.filter(blob=OuterRef("pk"), dataset__egress=Egress.RESTRICTED)))
    if closed_runs:
        closed |= Q(Exists(Artifact.objects.filter(blob=OuterRef("pk"), run__in=closed_runs)))
    return Blob.objects.filter(wanted, removed_at=None).exclude(closed).order_by("sha256")


def choices() -> list[Choice]:
    """What each choice would carry now, for whoever asks for an export."""
    closed_runs = runs_that_read(Egress.RESTRICTED)
    found = []
    for value, label in Export.Files.choices:
        sums = carried(value, closed_runs).order_by().aggregate(files=Count("pk"), total=Sum("bytes"))
        found.append(Choice(value, str(label), sums["files"], int(sums["total"] or 0)))
    return found


def needed_bytes(files: str) -> int:
    """What the export needs on the disk, at least."""
    total = carried(files, runs_that_read(Egress.RESTRICTED)).order_by().aggregate(total=Sum("bytes"))["total"]
    return int(total or 0) + ROWS_BYTES


def free_bytes() -> int:
    """What the disk has left where exports lie."""
    place = Path(settings.EXPORTS)
    while not place.exists():
        place = place.parent
    return shutil.disk_usage(place).free


def left_out(files: str, closed_runs: Collection[uuid.UUID]) -> list[dict[str, Any]]:
    """Datasets whose files stay, with the reason; and artifacts, by how many runs they are of."""
    found: list[dict[str, Any]] = []
    for dataset in Dataset.objects.exclude(egress__in=CLASSES[files]).order_by("slug"):
        why = (
            "restricted: neither its files nor their names leave"
            if dataset.egress == Egress.RESTRICTED
            else f"{dataset.egress}, not asked for"
        )
        found.append({"what": "files of a dataset", "dataset": dataset.slug, "egress": dataset.egress, "why": why})
    if Egress.INTERNAL not in CLASSES[files]:
        found.append({"what": "content of artifacts", "why": "not asked for"})
    if closed_runs:
        what = "content and metadata of artifacts, lines, last words, failures, memory, what policies knew of it, and details of events of runs"
        found.append({"what": what, "runs": len(closed_runs), "why": "something restricted was read"})
    return found


def closed_since(export: Export) -> list[Dataset]:
    """Datasets that have become stricter than they were when the export was made: it may not leave any more."""
    held: dict[str, list[str]] = export.contents.get("egress", {})
    stricter = Q(egress=Egress.RESTRICTED, pk__in=[*held.get(Egress.PUBLIC, []), *held.get(Egress.INTERNAL, [])])
    if export.files == Export.Files.PUBLIC:
        stricter |= Q(egress=Egress.INTERNAL, pk__in=held.get(Egress.PUBLIC, []))
    return list(Dataset.objects.filter(stricter).order_by("slug"))
