"""Exports of the open workspace: the list, how far one is, where its folder lies."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.cache import cache

from runs.models import Export
from workspaces import scope
from workspaces.models import NotFound, Workspace
from workspaces.queries.paging import Page, newest_first

PROGRESS_SECONDS = 3600


@dataclass(frozen=True, slots=True)
class Progress:
    """The `place`-th of `count` things, called `name`, is being written."""

    place: int
    count: int
    name: str

    @property
    def percent(self) -> int:
        return round(100 * self.place / self.count) if self.count else 0


def page_of_exports(*, cursor: str = "", size: int = 50) -> Page[Export]:
    return newest_first(Export.objects.select_related("requested_by"), cursor=cursor, size=size)


def progress_of(export: Export) -> Progress | None:
    """How far a writer is; None before it begins, after it ends, and where nobody says."""
    if export.status != Export.Status.RUNNING:
        return None
    told: dict[str, Any] | None = cache.get(progress_key(export))
    return Progress(told["place"], told["count"], told["name"]) if told else None


def progress_key(export: Export) -> str:
    return f"export-{export.pk.hex}"


@dataclass(frozen=True, slots=True)
class Download:
    """A folder that is sent as one tar file: its name in there, and the time that all its files bear (seconds UTC)."""

    folder: Path
    name: str
    mtime: int


def download_of(workspace: Workspace, export: Export) -> Download:
    """NotFound where the folder is gone although the row says ready: a copy of the database without its home."""
    folder = folder_of(export)
    if not folder.is_dir():
        raise NotFound("export")
    assert export.began_at is not None
    return Download(folder, f"{workspace.slug}-export-{export.number}", int(export.began_at.timestamp()))


def folder_of(export: Export) -> Path:
    """Where a kept export lies: below LABSITE_HOME, which no run can reach, named by keys alone."""
    return Path(settings.EXPORTS) / scope.current_id().hex / export.pk.hex
