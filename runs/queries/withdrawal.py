"""What withdrawing something would reach, asked before it is done; and what a withdrawal has reached."""

import uuid
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Q, QuerySet

from runs.lifecycle import ACTIVE
from runs.models import Artifact, Evaluation, Promotion, Run
from runs.queries.home_seeds import SeedLead, lead_of
from runs.queries.lineage import Lineage, Node, Way, reach, reached_ends
from runs.queries.lineage_edges import CONTENT, NodeKind
from runs.queries.promotion import Told, told
from runs.queries.ranking import FINITE, best_first
from runs.queries.scoreboard import scores_under
from runs.queries.withdrawn_content import Copies, copies_of
from runs.queries.withdrawn_memory import Memory, memory_on
from workspaces import kept_query
from workspaces.canonical import digest
from workspaces.models import Benchmark, Contract, DatasetVersion, NotFound, Withdrawal, WithdrawnObject

MOST_REACHED = 50_000  # things that one withdrawal marks
MOST_PROMOTIONS = 100  # that are named
SUBJECTS = {NodeKind(kind) for kind in Withdrawal.Subject.values}


@dataclass(frozen=True, slots=True)
class BoardChange:
    """A benchmark's board with and without what would be withdrawn, by its own ranking: where the contract ranks over seeds, rows of runs lead.
    A leader is None where nobody leads."""

    benchmark: Benchmark
    withdrawn: int  # scores of the current contract that would leave the board
    left: int
    leader: Evaluation | SeedLead | None
    next_leader: Evaluation | SeedLead | None

    @property
    def is_led_by_another(self) -> bool:
        return (self.leader and self.leader.pk) != (self.next_leader and self.next_leader.pk)

    @property
    def is_led_otherwise(self) -> bool:
        """By another, or by the same row with another value: it loses a run."""
        return self.is_led_by_another or (self.leader and self.leader.value) != (self.next_leader and self.next_leader.value)

    @property
    def over(self) -> str:
        """`mean` or `median`, where rows of runs lead; else empty."""
        return next((lead.over for lead in (self.leader, self.next_leader) if isinstance(lead, SeedLead)), "")


@dataclass(frozen=True, slots=True)
class Radius:
    """Everything that rests on a subject, the subject itself with it. `promotions`: what stands of it, which a withdrawal suspends; `copies`:
    versions with the same files, which it does not reach; `memory`: entries that are stale while it holds."""

    subject: Node
    label: str
    reached: Lineage
    at_work: tuple[Run, ...]
    boards: tuple[BoardChange, ...]
    promotions: tuple[Told, ...]
    copies: Copies
    memory: Memory

    @property
    def counts(self) -> Mapping[str, int]:
        """How many of each kind, without the subject."""
        return Counter(node.kind.value for node in self.reached.distance if node != self.subject)

    @property
    def fingerprint(self) -> str:
        return fingerprint_of(self.reached)


def find_subject(kind: str, text: str) -> tuple[Node, str]:
    """What may be withdrawn, by kind and id, with its label; NotFound where it is not here."""
    match kind:
        case NodeKind.DATASET_VERSION:
            version = DatasetVersion.objects.find(text, "dataset")
            return Node(NodeKind.DATASET_VERSION, version.pk), f"{version.dataset.slug}@{version.number}"
        case NodeKind.RUN:
            run = Run.objects.find(text)
            return Node(NodeKind.RUN, run.pk), run.name
        case NodeKind.ARTIFACT:
            artifact = Artifact.objects.find(text, "run")
            return Node(NodeKind.ARTIFACT, artifact.pk), f"{artifact.name} of {artifact.run.name}"
    raise NotFound("subject of a withdrawal")


def reached_by(subject: Node) -> Lineage:
    """The subject and all that rests on it, however far; `is_whole` is False beyond MOST_REACHED."""
    return reach([subject], Way.DOWN, along=CONTENT, most=MOST_REACHED)


def fingerprint_of(reached: Lineage) -> str:
    """Names exactly these things: whoever confirms a withdrawal confirms this."""
    return digest(sorted(f"{node.kind} {node.id.hex}" for node in reached.distance))


def fingerprint_now(subject: Node) -> str:
    """That of what rests on the subject by now, in a third of the time: for one who holds a lock."""
    return digest(sorted(f"{kind} {key}" for kind, key in reached_ends([subject], Way.DOWN, along=CONTENT, most=MOST_REACHED)))


def radius(subject: Node, label: str) -> Radius:
    """What withdrawing the subject now would reach."""
    reached = reached_by(subject)
    at_work = Run.objects.filter(pk__in=reached.of(NodeKind.RUN), status__in=sorted(ACTIVE)).order_by("-created_at")
    boards = tuple(_boards(reached.of(NodeKind.EVALUATION)))
    versions, artifacts = (kept_query.Keys(values=reached.of(kind)) for kind in (NodeKind.DATASET_VERSION, NodeKind.ARTIFACT))
    copies = copies_of(Q(version=versions), Q(pk=artifacts))
    memory = memory_on(lambda kind, field: Q(**{field: kept_query.Keys(values=reached.of(kind))}))
    return Radius(subject, label[:300], reached, tuple(at_work[:20]), boards, _standing(Q(artifact=artifacts)), copies, memory)


def withdrawals() -> "QuerySet[Withdrawal]":
    return Withdrawal.objects.select_related("withdrawn_by", "undone_by")


def counts_of(withdrawal: Withdrawal) -> Mapping[str, int]:
    """How many things of each kind a withdrawal has marked, without its subject."""
    return counts_of_all([withdrawal]).get(withdrawal.pk, Counter())


def counts_of_all(found: Iterable[Withdrawal]) -> Mapping[uuid.UUID, Mapping[str, int]]:
    """As `counts_of`, of several by their keys; those that have marked nothing else are left out. One query."""
    marks = WithdrawnObject.objects.filter(withdrawal__in=[one.pk for one in found], distance__gt=0).order_by()
    counts: dict[uuid.UUID, Counter[str]] = {}
    for key, kind, count in marks.values_list("withdrawal", "kind").annotate(Count("pk")):
        counts.setdefault(key, Counter())[kind] = count
    return counts


def marks_of(withdrawal: Withdrawal) -> "QuerySet[WithdrawnObject]":
    """Everything that a withdrawal has marked, what was withdrawn among it; in no order."""
    return withdrawal.objects_marked.filter(kind__in=list(NodeKind)).order_by()


def marked_runs(withdrawal: Withdrawal, *, limit: int = 100) -> list[Run]:
    """The newest runs that rest on what a withdrawal is about."""
    marks = withdrawal.objects_marked.filter(kind=NodeKind.RUN, distance__gt=0).values("object_id")
    return list(Run.objects.filter(pk__in=marks).select_related("agent", "requested_by").order_by("-created_at", "-pk")[:limit])


def marked_promotions(withdrawal: Withdrawal) -> tuple[Told, ...]:
    """What stands promoted of what a withdrawal has marked: suspended while it holds."""
    return _standing(Q(artifact__in=_marked(withdrawal, NodeKind.ARTIFACT)))


def copies_now(withdrawal: Withdrawal) -> Copies:
    """Versions that hold files of what a withdrawal has marked, and are not withdrawn."""
    return copies_of(Q(version__in=_marked(withdrawal, NodeKind.DATASET_VERSION)), Q(pk__in=_marked(withdrawal, NodeKind.ARTIFACT)))


def memory_now(withdrawal: Withdrawal) -> Memory:
    """Entries that rest on what a withdrawal has marked: stale while it holds."""
    return memory_on(lambda kind, field: Q(**{f"{field}__in": _marked(withdrawal, kind)}))


def _marked(withdrawal: Withdrawal, kind: NodeKind) -> "QuerySet[WithdrawnObject, Any]":
    return withdrawal.objects_marked.filter(kind=kind).values("object_id")


def _standing(of_artifacts: Q) -> tuple[Told, ...]:
    """What is promoted of these artifacts, by name."""
    rows = Promotion.objects.filter(of_artifacts, status=Promotion.Status.PROMOTED).select_related("artifact")
    return tuple(told(rows.order_by("name")[:MOST_PROMOTIONS]))


def _boards(evaluations: list[uuid.UUID]) -> list[BoardChange]:
    """Boards of the contracts that hold now, from which some of these scores would go."""
    gone = kept_query.Keys(values=evaluations)  # thousands of them
    scored = Evaluation.objects.filter(pk=gone).values_list("contract", flat=True).distinct()
    found = []
    for contract in Contract.objects.filter(pk__in=scored).select_related("benchmark").order_by("benchmark__slug"):
        newest = Contract.objects.filter(benchmark=contract.benchmark).order_by("-version").first()
        rows = scores_under(contract)
        leaving = rows.filter(pk=gone).count()
        if newest != contract or not leaving:
            continue
        left = rows.exclude(pk=gone)
        found.append(BoardChange(contract.benchmark, leaving, left.count(), _leader(rows, contract), _leader(left, contract)))
    return found


def _leader(scores: "QuerySet[Evaluation]", contract: Contract) -> Evaluation | SeedLead | None:
    if contract.over_seeds:
        return lead_of(scores, contract)
    return scores.filter(FINITE).select_related("run").order_by(*best_first(contract.direction)).first()
