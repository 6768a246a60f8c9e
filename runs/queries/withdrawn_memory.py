"""Memory that rests on what is, or would be, withdrawn: it is not marked, since words about a score are no data, but said to be stale for as long as
the withdrawal holds (`runs/queries/memory_stale.py`)."""

from collections.abc import Callable
from dataclasses import dataclass

from django.db.models import Q

from runs.models import MemoryEntry, MemoryEvidence
from runs.queries.lineage_edges import NodeKind

MOST_NAMED = 20
EVIDENCE = {
    NodeKind.RUN: "run",
    NodeKind.EVALUATION: "evaluation",
    NodeKind.ARTIFACT: "artifact",
    NodeKind.DATASET_VERSION: "dataset_version",
}


@dataclass(frozen=True, slots=True)
class Memory:
    """`named`: the newest, MOST_NAMED at most; `count`: of all revisions that stand."""

    named: tuple[MemoryEntry, ...] = ()
    count: int = 0


def memory_on(reached: Callable[[NodeKind, str], Q]) -> Memory:
    """Entries whose evidence, or the run that wrote them, is among what `reached(kind, field)` asks of a field. Two queries at most."""
    evidence = Q()
    for kind, field in EVIDENCE.items():
        evidence |= reached(kind, field)
    resting = MemoryEvidence.objects.filter(evidence).values("entry")
    found = MemoryEntry.objects.filter(Q(pk__in=resting) | reached(NodeKind.RUN, "run"), superseded_at=None)
    named = tuple(found.order_by("-created_at", "-pk")[:MOST_NAMED])
    return Memory(named, len(named) if len(named) < MOST_NAMED else found.count())
