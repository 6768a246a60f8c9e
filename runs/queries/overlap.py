"""What is to be read and compared, and what was found: checks of overlap between versions and holdouts."""

from typing import Any

from django.db.models import Count, Exists, OuterRef, Q, QuerySet

from runs.models import OverlapCheck, RecordIndex
from runs.overlap.method import METHOD
from workspaces import kept_query, scope
from workspaces.models import DatasetFile, DatasetVersion, Workspace

HOLDOUT = DatasetVersion.Role.HOLDOUT


def has_work() -> bool:
    """Is there a version to read, or a pair to compare? Nothing is done in an archive, nor before there is a region to keep hashes in."""
    workspace = Workspace.objects.get(pk=scope.current_id())
    if workspace.status == Workspace.Status.ARCHIVED or not workspace.region:
        return False
    if _unread().exists():
        return True
    read = _read()
    counts = read.aggregate(holdouts=Count("pk", filter=Q(role=HOLDOUT)), others=Count("pk", filter=~Q(role=HOLDOUT)))
    pairs = int(counts["holdouts"] * counts["others"])
    return bool(pairs) and OverlapCheck.objects.filter(method=METHOD, version__in=read, holdout__in=read).count() < pairs


def next_to_read() -> DatasetVersion | None:
    """The oldest version whose records are not hashed."""
    return _unread().select_related("dataset").order_by("created_at", "pk").first()


def pairs_to_compare(most: int) -> list[tuple[DatasetVersion, DatasetVersion]]:
    """Versions that are read, each with a holdout that it was not compared with, the newest versions first: people wait for those."""
    found: list[tuple[DatasetVersion, DatasetVersion]] = []
    read = _read().select_related("dataset")
    for holdout in read.filter(role=HOLDOUT).order_by("-created_at", "-pk"):
        compared = OverlapCheck.objects.filter(version=OuterRef("pk"), holdout=holdout, method=METHOD)
        others = read.exclude(role=HOLDOUT).filter(~Exists(compared)).order_by("-created_at", "-pk")
        found += [(version, holdout) for version in others[: most - len(found)]]
        if len(found) >= most:
            break
    return found


def index_of(version: DatasetVersion) -> RecordIndex | None:
    return RecordIndex.objects.select_related("blob").filter(version=version, method=METHOD).first()


def files_with_content(version: DatasetVersion) -> list[DatasetFile]:
    """In the order in which they are read: by path."""
    return list(DatasetFile.objects.filter(version=version).select_related("blob").order_by("path"))


def checks_of(version: "DatasetVersion | Any") -> "QuerySet[OverlapCheck]":
    """Checks of a version, or of a holdout against all others; what was found first, then by age. Without the pairs."""
    checks = OverlapCheck.objects.filter(Q(version=version) | Q(holdout=version), method=METHOD).defer("pairs")
    return checks.select_related("version__dataset", "holdout__dataset").order_by("-exact", "-near", "-checked_at", "-pk")


def first_checks_of(version: DatasetVersion, limit: int) -> list[OverlapCheck]:
    """What `checks_of` has first."""
    checks: list[OverlapCheck] = kept_query.ask(_checks_of, limit, version=version.pk)
    return checks


def _checks_of(limit: int, version: Any) -> "QuerySet[OverlapCheck]":
    return checks_of(version)[:limit]


def find_check(text: str) -> OverlapCheck:
    """One check with both sides; it may be about to be made anew. Raises NotFound."""
    return OverlapCheck.objects.find(text, "version__dataset", "holdout__dataset")


def _unread() -> "QuerySet[DatasetVersion]":
    return DatasetVersion.objects.filter(~Exists(_current_indexes()))


def _read() -> "QuerySet[DatasetVersion]":
    return DatasetVersion.objects.filter(Exists(_current_indexes()))


def _current_indexes() -> "QuerySet[RecordIndex]":
    return RecordIndex.objects.filter(version=OuterRef("pk"), method=METHOD)
