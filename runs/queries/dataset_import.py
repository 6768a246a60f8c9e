"""Imports of the open workspace: those of a dataset, and how far one is."""

from dataclasses import dataclass
from typing import Any

from django.core.cache import cache

from runs.models import DatasetImport
from workspaces import kept_query
from workspaces.models import Dataset
from workspaces.queries.paging import Page, newest_first

PROGRESS_SECONDS = 3600
SHOWN = 5


@dataclass(frozen=True, slots=True)
class Progress:
    """`read` bytes of the `place`-th of `count` files are here."""

    place: int
    count: int
    read: int


def imports_of(dataset: Dataset) -> list[DatasetImport]:
    """The newest, with who asked and the version that came of it."""
    return kept_query.rows(DatasetImport, dataset=dataset, related=("requested_by", "version"), order_by=("-created_at",), limit=SHOWN)


def page_of_imports(dataset: Dataset, *, cursor: str = "", size: int = 50) -> Page[DatasetImport]:
    rows = DatasetImport.objects.filter(dataset=dataset).select_related("requested_by", "version", "dataset")
    return newest_first(rows, cursor=cursor, size=size)


def progress_of(asked: DatasetImport) -> Progress | None:
    """How far a reader is; None before it begins, after it ends, and where nobody says."""
    if asked.status != DatasetImport.Status.RUNNING:
        return None
    told: dict[str, Any] | None = cache.get(progress_key(asked))
    return Progress(told["place"], len(asked.sources), told["bytes"]) if told else None


def progress_key(asked: DatasetImport) -> str:
    return f"import-{asked.pk.hex}"
