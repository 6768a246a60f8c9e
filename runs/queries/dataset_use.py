"""What used a dataset: the runs that read one of its versions."""

from dataclasses import dataclass

from runs.models import Run, RunInput
from workspaces.models import Dataset


@dataclass(frozen=True, slots=True)
class DatasetUse:
    run: Run
    version: int


def uses_of(dataset: Dataset, *, limit: int = 20) -> tuple[list[DatasetUse], int]:
    """The newest runs that read the dataset, and how many did in all (a run once for each version it read)."""
    inputs = RunInput.objects.filter(dataset_version__dataset=dataset)
    rows = inputs.select_related("run__agent", "dataset_version").order_by("-created_at", "-pk")[:limit]
    return [DatasetUse(row.run, row.dataset_version.number) for row in rows], inputs.count()
