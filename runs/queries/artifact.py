"""Artifacts of the workspace, newest first, and what came of them."""

from collections.abc import Sized
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, QuerySet, Sum

from runs.models import Artifact, Evaluation, Run, RunInput
from workspaces import kept_query
from workspaces.models import DatasetPiece
from workspaces.queries.paging import Page, newest_first

RECORDS = ("log", "lines")  # kinds of what every run leaves behind of itself; the others are what it was run for
USES_SHOWN = 20


def page_of_artifacts(
    *, text: str = "", kind: str = "", records: bool = False, is_deleted: bool = False, cursor: str = ""
) -> Page[Artifact]:  # fmt: skip
    """A page of results whose name holds `text`, or of logs and records, or of both what is deleted. Raises BadCursor."""
    rows = Artifact.objects.select_related("blob", "run").filter(deleted_at__isnull=not is_deleted)
    if not is_deleted:
        rows = rows.filter(kind__in=RECORDS) if records else rows.exclude(kind__in=RECORDS)
    if text:
        rows = rows.filter(name__icontains=text)
    if kind:
        rows = rows.filter(kind=kind)
    return newest_first(rows, cursor=cursor)


def kinds() -> list[str]:
    """Kinds of results that there are."""
    return list(
        Artifact.objects.filter(deleted_at=None).exclude(kind__in=RECORDS).order_by("kind").values_list("kind", flat=True).distinct()[:100]
    )


@dataclass(frozen=True, slots=True)
class ArtifactUses:
    """What came of an artifact. Each list is cut; the counts are of all."""

    readers: list[Run]
    readers_count: int
    scores: list[Evaluation]
    scores_count: int
    pieces: list[DatasetPiece]


def uses_of_artifact(artifact: Artifact) -> ArtifactUses:
    """The runs that read it, the scores that were measured of it, the live datasets that it is a piece of."""
    newest: dict[str, Any] = {"order_by": ("-created_at", "-pk"), "limit": USES_SHOWN}
    readers = kept_query.rows(Run, inputs__artifact=artifact, related=("agent",), **newest)
    scores = kept_query.rows(Evaluation, subject_artifact=artifact, related=("run", "benchmark", "contract"), **newest)
    pieces = kept_query.rows(
        DatasetPiece, source_artifact_id=artifact.pk, related=("dataset", "window"), order_by=("dataset__slug", "number"),
        limit=USES_SHOWN,
    )  # fmt: skip
    return ArtifactUses(
        readers=readers,
        readers_count=_count_of(readers, Run.objects.filter(inputs__artifact=artifact)),
        scores=scores,
        scores_count=_count_of(scores, Evaluation.objects.filter(subject_artifact=artifact)),
        pieces=pieces,
    )


def _count_of(shown: Sized, rows: "QuerySet[Any]") -> int:
    """How many there are; asked only where not all are shown."""
    return len(shown) if len(shown) < USES_SHOWN else rows.count()


@dataclass(frozen=True, slots=True)
class Grown:
    """What a run has added to one live dataset and stands in one window; `window` is empty where it still waits. Slugs."""

    dataset: str
    window: str
    pieces: int
    records: int


@dataclass(frozen=True, slots=True)
class RunUses:
    """What came of a run's outputs."""

    readers: list[Run]
    readers_count: int
    grown: list[Grown]


def uses_of_run(run: Run) -> RunUses:
    """The runs that read what it left, and what it has added to live datasets."""
    readers = Run.objects.filter(pk__in=RunInput.objects.filter(artifact__run=run).values("run"))
    pieces = DatasetPiece.objects.filter(made_by_run_id=run.pk).values("dataset__slug", "window__slug")
    sums = pieces.annotate(pieces=Count("pk"), sum=Sum("records")).order_by("dataset__slug", "window__window_number", "window__slug")
    shown = list(readers.order_by("-created_at", "-pk")[:USES_SHOWN])
    return RunUses(
        readers=shown,
        readers_count=_count_of(shown, readers),
        grown=[Grown(row["dataset__slug"], row["window__slug"] or "", row["pieces"], row["sum"]) for row in sums[:USES_SHOWN]],
    )
