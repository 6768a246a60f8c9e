"""Artifacts of the workspace, newest first."""

from runs.models import Artifact
from workspaces.queries.paging import Page, newest_first


def page_of_artifacts(*, text: str = "", kind: str = "", cursor: str = "") -> Page[Artifact]:
    """A page of artifacts whose name holds `text`. Raises BadCursor."""
    rows = Artifact.objects.select_related("blob", "run")
    if text:
        rows = rows.filter(name__icontains=text)
    if kind:
        rows = rows.filter(kind=kind)
    return newest_first(rows, cursor=cursor)


def kinds() -> list[str]:
    return list(Artifact.objects.order_by("kind").values_list("kind", flat=True).distinct()[:100])
