"""The same bytes elsewhere: dataset versions that hold files of what is, or would be, withdrawn, and rest on it by no record of ours.

Whoever copies a file outside of labsite and brings it in again leaves no edge to walk along, but content has one address: files are compared by it.
"""

from collections.abc import Collection
from dataclasses import dataclass
from uuid import UUID

from django.db.models import Count, Exists, OuterRef, Q

from runs.models import Artifact
from runs.queries.lineage_edges import NodeKind
from workspaces import kept_query
from workspaces.models import DatasetFile, DatasetVersion, Withdrawal
from workspaces.queries.withdrawal import marked, standing_on

MOST_NAMED = 20


@dataclass(frozen=True, slots=True)
class Copy:
    """A version of which `shared` of `files` files are in what is withdrawn too."""

    version: DatasetVersion
    shared: int
    files: int


@dataclass(frozen=True, slots=True)
class Copies:
    """`named`: those with the most shared files, MOST_NAMED at most; `count`: of all."""

    named: tuple[Copy, ...] = ()
    count: int = 0


@dataclass(frozen=True, slots=True)
class Original:
    """Where a file of a version is from, as far as content tells, and the withdrawal that holds of it."""

    label: str
    withdrawal: Withdrawal


@dataclass(frozen=True, slots=True)
class WithdrawnContent:
    """`shared` of a version's `files` files are in something withdrawn too; `originals` are some of these things."""

    shared: int
    files: int
    originals: tuple[Original, ...]


def copies_of(versions: Collection[UUID], artifacts: Collection[UUID]) -> Copies:
    """Versions besides `versions` that hold files of these versions and artifacts; those that are withdrawn already are left out."""
    in_versions = Q(version=kept_query.Keys(values=list(versions)))
    found = (
        DatasetFile.objects.filter(_held(in_versions, Q(pk=kept_query.Keys(values=list(artifacts)))))
        .exclude(in_versions)
        .exclude(version__in=marked(NodeKind.DATASET_VERSION))
        .order_by()
        .values("version")
        .annotate(shared=Count("pk"))
    )  # fmt: skip
    rows = list(found.order_by("-shared", "version")[:MOST_NAMED])
    count = len(rows) if len(rows) < MOST_NAMED else found.count()
    keys = [row["version"] for row in rows]
    named = DatasetVersion.objects.select_related("dataset").in_bulk(keys)
    files = dict(DatasetFile.objects.filter(version__in=keys).order_by().values_list("version").annotate(Count("pk")))
    return Copies(tuple(Copy(named[row["version"]], row["shared"], files[row["version"]]) for row in rows), count)


def withdrawn_content(version: DatasetVersion) -> WithdrawnContent | None:
    """What of a version, which rests on nothing withdrawn itself, is in something that is; None where nothing is."""
    mine = DatasetFile.objects.filter(version=version)
    versions, artifacts = marked(NodeKind.DATASET_VERSION), marked(NodeKind.ARTIFACT)
    shared = mine.filter(_held(Q(version__in=versions), Q(pk__in=artifacts)))
    count = shared.count()
    if not count:
        return None
    blobs = list(shared.order_by("path").values_list("blob", flat=True)[:MOST_NAMED])
    sources = DatasetVersion.objects.filter(pk__in=versions, files__blob__in=blobs).select_related("dataset").distinct()
    outputs = Artifact.objects.filter(pk__in=artifacts, blob__in=blobs).select_related("run")
    labels = {(NodeKind.DATASET_VERSION.value, one.pk): f"{one.dataset.slug}@{one.number}" for one in sources[:MOST_NAMED]}
    labels |= {(NodeKind.ARTIFACT.value, one.pk): f"{one.name} of {one.run.name}" for one in outputs[:MOST_NAMED]}
    originals = [Original(labels[thing], withdrawals[0]) for thing, withdrawals in standing_on(labels).items()]
    return WithdrawnContent(count, mine.count(), tuple(sorted(originals, key=lambda original: original.label)[:3]))


def _held(in_versions: Q, of_artifacts: Q) -> Q:
    """Files whose content these rows have."""
    in_files = DatasetFile.objects.filter(in_versions, blob=OuterRef("blob"))
    return Q(Exists(in_files)) | Q(Exists(Artifact.objects.filter(of_artifacts, blob=OuterRef("blob"))))
