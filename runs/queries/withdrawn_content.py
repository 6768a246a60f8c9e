"""The same bytes elsewhere: dataset versions that hold files of what is, or would be, withdrawn, and rest on it by no record of ours.

Whoever copies a file outside of labsite and brings it in again leaves no edge to walk along, but content has one address: files are compared by it.
"""

from dataclasses import dataclass

from django.db.models import Count, Exists, OuterRef, Q

from runs.models import Artifact
from runs.queries.lineage_edges import NodeKind
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

    kind: str
    label: str
    withdrawal: Withdrawal


@dataclass(frozen=True, slots=True)
class WithdrawnContent:
    """`shared` of a version's `files` files are in something withdrawn too; `originals` are some of these things."""

    shared: int
    files: int
    originals: tuple[Original, ...]


def copies_of(in_versions: Q, of_artifacts: Q) -> Copies:
    """Versions that hold the content of these files of versions, which are told by the files' `version`, or of these artifacts; neither versions of
    these themselves nor any that is withdrawn already."""
    found = (
        DatasetFile.objects.filter(_held(in_versions, of_artifacts))
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
    originals = [Original(thing[0], labels[thing], withdrawals[0]) for thing, withdrawals in standing_on(labels).items()]
    return WithdrawnContent(count, mine.count(), tuple(sorted(originals, key=lambda original: original.label)[:3]))


def _held(in_versions: Q, of_artifacts: Q) -> Q:
    """Files whose content these rows have."""
    in_files = DatasetFile.objects.filter(in_versions, blob=OuterRef("blob"))
    return Q(Exists(in_files)) | Q(Exists(Artifact.objects.filter(of_artifacts, blob=OuterRef("blob"))))
