"""What there is to say of the nodes of a walk: name, page, when and by whom, each kind by one statement however many."""

import uuid
from collections.abc import Callable, Collection, Iterable, Mapping

from django.db.models import QuerySet
from django.urls import reverse
from django.utils.http import urlencode

from runs.models import Artifact, Evaluation, Run, UndeclaredInput
from runs.queries.lineage import Node
from runs.queries.lineage_decided import DECIDED_READERS
from runs.queries.lineage_described import Described, Rows
from runs.queries.lineage_edges import NodeKind
from workspaces.access import Kind, Permission, Rights
from workspaces.models import AgentVersion, Approval, ApprovalVote, Contract, DatasetVersion, Pool, User
from workspaces.units import number

K = NodeKind
# What a reader must be allowed to see to be told the name; who did it stands on every page.
SEEN_AS: dict[NodeKind, Kind] = {
    K.RUN: Kind.RUN,
    K.EVALUATION: Kind.EVALUATION,
    K.ARTIFACT: Kind.ARTIFACT,
    K.DATASET_VERSION: Kind.DATASET,
    K.AGENT_VERSION: Kind.AGENT,
    K.CONTRACT: Kind.BENCHMARK,
    K.APPROVAL: Kind.APPROVAL,
    K.UNDECLARED: Kind.RUN,
    K.PROMOTION: Kind.ARTIFACT,
    K.SWEEP: Kind.RUN,
    K.DECISION: Kind.POLICY,
    K.POLICY_VERSION: Kind.POLICY,
    K.MEMORY: Kind.MEMORY,
    K.IMPORT: Kind.DATASET,
    K.DATASET_SOURCE: Kind.DATASET,
    K.BENCHMARK_SOURCE: Kind.BENCHMARK,
}
# One and many, as people say it.
WORDS: dict[NodeKind, tuple[str, str]] = {
    K.RUN: ("run", "runs"),
    K.EVALUATION: ("score", "scores"),
    K.ARTIFACT: ("artifact", "artifacts"),
    K.DATASET_VERSION: ("dataset", "datasets"),
    K.AGENT_VERSION: ("code", "versions of code"),
    K.CONTRACT: ("contract", "contracts"),
    K.APPROVAL: ("person's approval", "approvals by people"),
    K.PERSON: ("person", "people"),
    K.UNDECLARED: ("undeclared input", "undeclared inputs"),
    K.PROMOTION: ("promotion", "promotions"),
    K.SWEEP: ("sweep", "sweeps"),
    K.DECISION: ("decision of a policy", "decisions of policies"),
    K.POLICY_VERSION: ("policy", "versions of policies"),
    K.MEMORY: ("memory entry", "memory entries"),
    K.IMPORT: ("import", "imports"),
    K.DATASET_SOURCE: ("source", "sources"),
    K.BENCHMARK_SOURCE: ("source benchmark", "source benchmarks"),
}
NOT_ISOLATED = "not isolated: what else it read is not known"
NOT_DECLARED = "not declared"
UNDECLARED_FIELDS = tuple(field.name for field in UndeclaredInput._meta.concrete_fields)


def words_of(kind: NodeKind, count: int = 1) -> str:
    one, many = WORDS.get(kind, (kind.value.replace("_", " "), f"{kind.value.replace('_', ' ')}s"))
    return one if count == 1 else many


def may_see(rights: Rights, kind: NodeKind) -> bool:
    return kind not in SEEN_AS or rights.allows(Permission.VIEW, SEEN_AS[kind])


def describe(nodes: Collection[Node], rights: Rights, workspace: str) -> dict[Node, Described]:
    """Each of the nodes; of a kind that the reader may not see only that it is one. `workspace` is the slug for addresses."""
    found: dict[Node, Described] = {}
    by_kind: dict[NodeKind, list[uuid.UUID]] = {}
    for node in nodes:
        by_kind.setdefault(node.kind, []).append(node.id)
    for kind, keys in by_kind.items():
        if may_see(rights, kind) and kind in READERS:
            found |= {Node(kind, pk): described for pk, described in READERS[kind](keys, workspace)}
    for node in nodes:
        word = words_of(node.kind)
        article = "an" if word[0] in "aeiou" else "a"
        found.setdefault(node, Described(f"{article} {word}", is_hidden=not may_see(rights, node.kind)))
    return found


class Descriptions:
    """What the parts of one page say of nodes, each asked for once. Those `ahead` are asked for together, one statement a kind: the nearest of a walk
    stand in its graph and in its table, and what is farther is asked for where it is shown."""

    def __init__(self, rights: Rights, workspace: str, *, ahead: Collection[Node] = ()) -> None:
        self._rights, self._workspace = rights, workspace
        self._known = describe(ahead, rights, workspace)

    def of(self, nodes: Collection[Node]) -> Mapping[Node, Described]:
        """At least these."""
        self._known |= describe([node for node in nodes if node not in self._known], self._rights, self._workspace)
        return self._known


def _runs(keys: list[uuid.UUID], workspace: str) -> Rows:
    rows = Run.objects.filter(pk__in=keys).select_related("agent", "requested_by")
    shown = ("name", "number", "status", "created_at", "started_at", "ended_at", "content_hash", "seed", "agent__name")
    people = ("requested_by__username", "requested_by__display_name")
    for row, isolation in _with_isolation(rows.only(*shown, *people)):
        yield (
            row.pk,
            Described(
                label=row.name,
                url=reverse("run", args=[workspace, row.public_id]),
                lineage_url=reverse("run-lineage", args=[workspace, row.public_id]),
                when=row.created_at,
                by=row.requested_by.label,
                doubt=NOT_ISOLATED if isolation == Pool.Isolation.NONE else "",
                public_id=row.public_id,
                attributes={
                    "status": row.status,
                    "contentHash": row.content_hash,
                    "seed": row.seed,
                    "isolation": isolation,
                    "startTime": row.started_at,
                    "endTime": row.ended_at,
                },
            ),
        )


def _with_isolation(rows: "QuerySet[Run]") -> Iterable[tuple[Run, str]]:
    """Of what is frozen only the isolation: the rest is kilobytes a run."""
    isolations = dict(rows.order_by().values_list("pk", "frozen__pool__isolation"))
    return ((row, str(isolations[row.pk])) for row in rows)


def _evaluations(keys: list[uuid.UUID], workspace: str) -> Rows:
    for row in Evaluation.objects.filter(pk__in=keys).select_related("benchmark"):
        yield (
            row.pk,
            Described(
                label=f"{row.metric} {number(row.value, row.standard_error)} on {row.benchmark.name}",
                url=reverse("evaluation", args=[workspace, row.public_id]),
                lineage_url=reverse("evaluation-lineage", args=[workspace, row.public_id]),
                when=row.created_at,
                public_id=row.public_id,
                attributes={"metric": row.metric, "value": repr(row.value), "samples": row.samples},
            ),
        )


def _artifacts(keys: list[uuid.UUID], workspace: str) -> Rows:
    for row in Artifact.objects.filter(pk__in=keys).select_related("blob"):
        yield (
            row.pk,
            Described(
                label=row.name or row.path,
                url=reverse("artifact", args=[workspace, row.public_id]),
                lineage_url=reverse("artifact-lineage", args=[workspace, row.public_id]),
                when=row.created_at,
                public_id=row.public_id,
                attributes={"kind": row.kind, "path": row.path, "bytes": row.blob.bytes, "sha256": row.blob.sha256},
            ),
        )


def _dataset_versions(keys: list[uuid.UUID], workspace: str) -> Rows:
    for row in DatasetVersion.objects.filter(pk__in=keys).select_related("dataset", "created_by"):
        dataset = row.dataset
        yield (
            row.pk,
            Described(
                label=row.label,
                url=f"{reverse('dataset', args=[workspace, dataset.slug])}?version={row.number}",
                lineage_url=reverse("dataset-lineage", args=[workspace, dataset.slug, str(row.number)]),
                when=row.created_at,
                by=row.created_by.label,
                public_id=row.public_id,
                attributes={
                    "dataset": dataset.public_id,
                    "version": row.number,
                    "role": row.role,
                    "origin": row.origin or dataset.origin,
                    "licence": row.licence or dataset.licence or None,
                    "source": row.source or None,
                    "records": row.records,
                    "bytes": row.bytes,
                    "contentHash": row.content_hash,
                },
            ),
        )


def _agent_versions(keys: list[uuid.UUID], workspace: str) -> Rows:
    for row in AgentVersion.objects.filter(pk__in=keys).select_related("agent", "created_by"):
        yield (
            row.pk,
            Described(
                label=row.label,
                url=f"{reverse('agent', args=[workspace, row.agent.slug])}#version-{row.number}",
                lineage_url=reverse("agent-lineage", args=[workspace, row.agent.slug, str(row.number)]),
                when=row.created_at,
                by=row.created_by.label,
                public_id=row.public_id,
                attributes={"agent": row.agent.public_id, "version": row.number, "contentHash": row.content_hash},
            ),
        )


def _contracts(keys: list[uuid.UUID], workspace: str) -> Rows:
    for row in Contract.objects.filter(pk__in=keys).select_related("benchmark"):
        yield (
            row.pk,
            Described(
                label=row.label,
                url=reverse("benchmark", args=[workspace, row.benchmark.slug]),
                lineage_url=reverse("benchmark-lineage", args=[workspace, row.benchmark.slug, str(row.version)]),
                when=row.created_at,
                public_id=row.public_id,
                attributes={"benchmark": row.benchmark.public_id, "version": row.version, "contentHash": row.content_hash},
            ),
        )


def _approvals(keys: list[uuid.UUID], workspace: str) -> Rows:
    """By whom it was decided; while it waits, by whom it was asked."""
    deciders: dict[uuid.UUID, dict[str, None]] = {}
    for vote in ApprovalVote.objects.filter(approval__in=keys).select_related("person").order_by("created_at", "pk"):
        deciders.setdefault(vote.approval_id, {})[vote.person.label] = None
    for row in Approval.objects.filter(pk__in=keys).select_related("requested_by"):
        yield (
            row.pk,
            Described(
                label=f"{row.subject_label}: {row.get_status_display()}",
                url=reverse("approval", args=[workspace, row.public_id]),
                when=row.decided_at or row.created_at,
                by=", ".join(deciders.get(row.pk, ())) or row.requested_by.label,
                public_id=row.public_id,
                attributes={"status": row.status, "contentHash": row.content_hash, "endTime": row.decided_at},
            ),
        )


def _people(keys: list[uuid.UUID], workspace: str) -> Rows:
    for row in User.objects.filter(pk__in=keys):
        address = f"{reverse('run-list', args=[workspace])}?{urlencode({'person': row.username})}"
        yield row.pk, Described(label=row.label, url=address, public_id=f"person_{row.pk.hex}", attributes={"username": row.username})


def _undeclared(keys: list[uuid.UUID], workspace: str) -> Rows:
    for row in UndeclaredInput.objects.filter(pk__in=keys).select_related("run").only(*UNDECLARED_FIELDS, "run__name"):
        yield (
            row.pk,
            Described(
                label=row.name,
                url=f"{reverse('run', args=[workspace, row.run.public_id])}?tab=files",
                when=row.created_at,
                doubt=NOT_DECLARED,
                public_id=row.public_id,
                attributes={"kind": row.kind, "uri": row.uri or None, "what": row.what or None, "sha256": row.sha256 or None},
            ),
        )


READERS: dict[NodeKind, Callable[[list[uuid.UUID], str], Rows]] = {
    K.RUN: _runs,
    K.EVALUATION: _evaluations,
    K.ARTIFACT: _artifacts,
    K.DATASET_VERSION: _dataset_versions,
    K.AGENT_VERSION: _agent_versions,
    K.CONTRACT: _contracts,
    K.APPROVAL: _approvals,
    K.PERSON: _people,
    K.UNDECLARED: _undeclared,
    **DECIDED_READERS,
}
