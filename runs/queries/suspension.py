"""Which artifacts nobody should rest on for now, although nothing was decided about their promotions: asked in one place, told by many.

A source answers, for keys of artifacts, which of them are suspended and why, in a number of queries that does not grow with them. A new one joins by
its line in SOURCES.
"""

import uuid
from collections.abc import Callable, Collection, Iterable

from runs.models import Artifact
from runs.queries.lineage import MOST_NODES, Link, Node, Way, walk
from runs.queries.lineage_edges import CONTENT, NodeKind
from runs.queries.verdict import State, said_to_be, verdicts_of
from workspaces.models import DatasetVersion, Withdrawal
from workspaces.queries.withdrawal import standing_on

Source = Callable[[Collection[uuid.UUID]], dict[uuid.UUID, str]]


def suspended(artifact_ids: Collection[uuid.UUID]) -> dict[uuid.UUID, str]:
    """By artifact, a sentence why it is suspended; those that are not are left out."""
    found: dict[uuid.UUID, str] = {}
    for source in SOURCES if artifact_ids else ():
        found = source(artifact_ids) | found
    return {key: why if why.endswith((".", "!", "?")) else f"{why}." for key, why in found.items()}


def _files_missing(artifact_ids: Collection[uuid.UUID]) -> dict[uuid.UUID, str]:
    rows = Artifact.objects.filter(pk__in=artifact_ids, blob__missing_at__isnull=False).values_list("pk", "blob__missing_at")
    return {pk: f"Its file was not found whole in the store on {missing_at:%-d %B %Y}." for pk, missing_at in rows}


def _withdrawn(artifact_ids: Collection[uuid.UUID]) -> dict[uuid.UUID, str]:
    found = standing_on((NodeKind.ARTIFACT, key) for key in artifact_ids)
    return {key: _words(key, withdrawals[0]) for (_, key), withdrawals in found.items()}


def _words(key: uuid.UUID, withdrawal: Withdrawal) -> str:
    about = "It" if withdrawal.subject_id == key else f"{withdrawal.subject_label}, which it rests on,"
    return f"{about} is withdrawn: {withdrawal.reason}"


def _contaminated(artifact_ids: Collection[uuid.UUID]) -> dict[uuid.UUID, str]:
    """Of the data that it was made of, however far back, the nearest that is contaminated by the last verdict that was given: what is compared anew
    stays so until that is done. Data that is not compared with a new holdout yet, or cannot be, suspends nothing: each upload of one would suspend
    everything."""
    suspects = said_to_be(State.CONTAMINATED)
    if not suspects:
        return {}
    starts = [Node(NodeKind.ARTIFACT, key) for key in artifact_ids]
    made_of = walk(starts, Way.UP, along=CONTENT, most=MOST_NODES * len(starts))
    rows = DatasetVersion.objects.filter(pk__in=suspects & set(made_of.of(NodeKind.DATASET_VERSION))).select_related("dataset")
    verdicts = verdicts_of(rows)
    bad = {Node(NodeKind.DATASET_VERSION, row.pk): row for row in rows if verdicts[row.pk].is_contaminated}
    cause = _causes(sorted(bad), made_of.links)
    return {
        start.id: f"{row.dataset.slug}@{row.number}, which it was made of, is contaminated: {verdicts[row.pk].contaminated}"
        for start in starts
        if (row := bad.get(cause.get(start, start))) is not None
    }


def _causes(bad: Iterable[Node], links: Iterable[Link]) -> dict[Node, Node]:
    """Of everything that was made of one of `bad`, which: the nearest."""
    later: dict[Node, list[Node]] = {}
    for link in links:
        later.setdefault(link.earlier, []).append(link.later)
    found = {node: node for node in bad}
    fresh = list(found)
    for node in fresh:  # it grows on the way
        for other in later.get(node, ()):
            if other not in found:
                found[other] = found[node]
                fresh.append(other)
    return found


SOURCES: tuple[Source, ...] = (_withdrawn, _files_missing, _contaminated)
