"""Artifacts of the workspace, newest first."""

from runs.models import Artifact
from workspaces.queries.paging import Page, newest_first

RECORDS = ("log", "lines")  # kinds of what every run leaves behind of itself; the others are what it was run for


def page_of_artifacts(*, text: str = "", kind: str = "", records: bool = False, cursor: str = "") -> Page[Artifact]:
    """A page of results whose name holds `text`, or of logs and records. Raises BadCursor."""
    rows = Artifact.objects.select_related("blob", "run")
    rows = rows.filter(kind__in=RECORDS) if records else rows.exclude(kind__in=RECORDS)
    if text:
        rows = rows.filter(name__icontains=text)
    if kind:
        rows = rows.filter(kind=kind)
    return newest_first(rows, cursor=cursor)


def kinds() -> list[str]:
    """Kinds of results that there are."""
    return list(Artifact.objects.exclude(kind__in=RECORDS).order_by("kind").values_list("kind", flat=True).distinct()[:100])
