"""What class the work of runs is of: a run that has read something closed makes nothing that is open, and so on down the lineage."""

import uuid
from collections.abc import Collection

from django.db.models import Q

from runs.models import Run
from runs.queries.lineage import MOST_WALKED, Node, Way, reached_ends
from runs.queries.lineage_edges import CONTENT, NodeKind
from workspaces import kept_query
from workspaces.models import Dataset, DatasetPiece, DatasetVersion

Egress = Dataset.Egress


def runs_that_read(egress: str) -> set[uuid.UUID]:
    """Runs that have read a dataset of this class, or what was made of one, however far back; every run where that is more than MOST_WALKED.
    Two queries."""
    versions = DatasetVersion.objects.filter(dataset__egress=egress).values_list("pk", flat=True)
    found = reached_ends([Node(NodeKind.DATASET_VERSION, pk) for pk in versions], Way.DOWN, along=CONTENT, most=MOST_WALKED)
    if len(found) > MOST_WALKED:
        return set(Run.objects.values_list("pk", flat=True))
    return {uuid.UUID(hex=key) for kind, key in found if kind == NodeKind.RUN}


def strictest_read_by(run_id: uuid.UUID) -> str:
    """The strictest class among what a run has read, however far back; public where it has read nothing. Two queries."""
    versions = _versions_behind([Node(NodeKind.RUN, run_id)])
    return Egress.RESTRICTED if versions is None else strictest_of(versions)


def strictest_of(versions: Collection[uuid.UUID]) -> str:
    """The strictest class among the datasets of these versions; public where there are none."""
    rows = DatasetVersion.objects.filter(pk=kept_query.Keys(values=list(versions)))
    classes = set(rows.values_list("dataset__egress", flat=True))
    return next((egress for egress in (Egress.RESTRICTED, Egress.INTERNAL) if egress in classes), Egress.PUBLIC)


def sources_of(dataset: Dataset) -> list[Dataset] | None:
    """Other datasets that its versions, its windows and its waiting pieces were made of, however far back, by slug; None where that is more than
    MOST_WALKED things. Its own windows are none of them: they follow it, also where runs that read them add to it."""
    own, starts = _own(dataset)
    waiting = DatasetPiece.objects.filter(dataset=dataset, window=None)  # no version has them yet
    starts += [Node(NodeKind.RUN, pk) for pk in waiting.values_list("made_by_run_id", flat=True)]
    behind = _versions_behind(starts)
    if behind is None:
        return None
    versions = DatasetVersion.objects.filter(pk=kept_query.Keys(values=behind)).exclude(own)
    return list(Dataset.objects.filter(pk__in=versions.values("dataset")).order_by("slug"))


def made_of(dataset: Dataset) -> list[uuid.UUID]:
    """Other datasets that a version or a piece of was made of it or of its windows, however far; each dataset where that is more than MOST_WALKED
    things. Three queries."""
    _, starts = _own(dataset)
    found = reached_ends(starts, Way.DOWN, along=CONTENT, most=MOST_WALKED)
    if len(found) > MOST_WALKED:
        return list(Dataset.objects.values_list("pk", flat=True))
    keys: dict[str, list[uuid.UUID]] = {}
    for kind, key in found:
        keys.setdefault(kind, []).append(uuid.UUID(hex=key))
    versions, runs = (kept_query.Keys(values=keys.get(kind, [])) for kind in (NodeKind.DATASET_VERSION, NodeKind.RUN))
    frozen = DatasetVersion.objects.filter(pk=versions).values_list("dataset", flat=True)
    grown = DatasetPiece.objects.filter(made_by_run_id=runs).values_list("dataset", flat=True)
    return list(frozen.union(grown))


def _own(dataset: Dataset) -> tuple[Q, list[Node]]:
    """Versions of a dataset and of its windows: the condition, and where a walk begins."""
    own = Q(dataset=dataset) | Q(dataset__window_of=dataset)
    return own, [Node(NodeKind.DATASET_VERSION, pk) for pk in DatasetVersion.objects.filter(own).values_list("pk", flat=True)]


def _versions_behind(starts: Collection[Node]) -> list[uuid.UUID] | None:
    found = reached_ends(starts, Way.UP, along=CONTENT, most=MOST_WALKED)
    return None if len(found) > MOST_WALKED else [uuid.UUID(hex=key) for kind, key in found if kind == NodeKind.DATASET_VERSION]
