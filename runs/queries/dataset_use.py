"""What used a dataset, the runs that read one of its versions; and who made a window, the runs whose pieces it holds."""

from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Min, QuerySet, Sum

from runs.models import Artifact, Run, RunInput
from workspaces import kept_query
from workspaces.models import Dataset, DatasetPiece, DatasetVersion

USE_SHOWS = ("run__name", "run__status", "run__created_at", "run__agent__name", "dataset_version__number")


@dataclass(frozen=True, slots=True)
class DatasetUse:
    run: Run
    version: int


def uses_of(dataset: Dataset, *, limit: int = 20) -> tuple[list[DatasetUse], int]:
    """The newest runs that read the dataset, and how many did in all (a run once for each version it read)."""
    rows: list[RunInput] = kept_query.ask(_newest, limit, dataset=dataset.pk)
    count = len(rows) if len(rows) < limit else RunInput.objects.filter(dataset_version__dataset=dataset).count()
    return [DatasetUse(row.run, row.dataset_version.number) for row in rows], count


def source_artifact_of(version: DatasetVersion) -> Artifact | None:
    """The artifact whose content the version is, with its run; None where it is not an artifact's."""
    if version.source_artifact_id is None:
        return None
    return Artifact.objects.select_related("run").filter(pk=version.source_artifact_id).first()


def _newest(limit: int, dataset: Any) -> "QuerySet[RunInput]":
    inputs = RunInput.objects.filter(dataset_version__dataset=dataset)
    return inputs.select_related("run__agent", "dataset_version").only(*USE_SHOWS).order_by("-created_at", "-pk")[:limit]


@dataclass(frozen=True, slots=True)
class Maker:
    run: Run
    pieces: int
    records: int


def makers_of(window: Dataset, *, limit: int = 20) -> tuple[list[Maker], int]:
    """The first runs whose pieces a window holds, in the order of their pieces, and how many they are in all."""
    pieces = DatasetPiece.objects.filter(window=window).values("made_by_run_id")
    sums = list(pieces.annotate(first=Min("number"), pieces=Count("pk"), sum=Sum("records")).order_by("first"))
    runs = Run.objects.in_bulk([row["made_by_run_id"] for row in sums[:limit]])
    rows = [row for row in sums[:limit] if row["made_by_run_id"] in runs]
    return [Maker(runs[row["made_by_run_id"]], row["pieces"], row["sum"]) for row in rows], len(sums)
