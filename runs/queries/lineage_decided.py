"""What there is to say of what was decided, learnt and brought in: promotions, sweeps, policies, memory, imports and where these are from."""

import uuid
from collections.abc import Callable

from django.urls import reverse

from runs.models import DatasetImport, Decision, MemoryEntry, PolicyVersion, Promotion, Sweep, Trust
from runs.queries.lineage_described import Described, Rows
from runs.queries.lineage_edges import NodeKind
from workspaces.models import Benchmark, DatasetVersion

K = NodeKind
NOT_VOUCHED = "nobody has vouched for it"


def _promotions(keys: list[uuid.UUID], workspace: str) -> Rows:
    for row in Promotion.objects.filter(pk__in=keys).select_related("requested_by"):
        yield (
            row.pk,
            Described(
                label=f"{row.label}: {row.get_status_display()}",
                url=reverse("promotion", args=[workspace, row.public_id]),
                lineage_url=reverse("promotion-lineage", args=[workspace, row.public_id]),
                when=row.decided_at or row.created_at,
                by=row.requested_by.label,
                public_id=row.public_id,
                attributes={
                    "name": row.name,
                    "status": row.status,
                    "contentHash": row.content_hash,
                    "startTime": row.created_at,
                    "endTime": row.decided_at,
                },
            ),
        )


def _sweeps(keys: list[uuid.UUID], workspace: str) -> Rows:
    for row in Sweep.objects.filter(pk__in=keys).select_related("requested_by"):
        yield (
            row.pk,
            Described(
                label=row.name,
                url=reverse("sweep", args=[workspace, row.public_id]),
                when=row.created_at,
                by=row.requested_by.label,
                public_id=row.public_id,
                attributes={"status": row.status, "members": row.members, "startTime": row.created_at, "endTime": row.ended_at},
            ),
        )


def _decisions(keys: list[uuid.UUID], workspace: str) -> Rows:
    for row in Decision.objects.filter(pk__in=keys).select_related("policy").defer("facts", "checks", "candidates"):
        yield (
            row.pk,
            Described(
                label=f"{row.label}: {row.outcome}",
                url=reverse("decision", args=[workspace, row.public_id]),
                lineage_url=reverse("decision-lineage", args=[workspace, row.public_id]),
                when=row.created_at,
                public_id=row.public_id,
                attributes={"outcome": row.outcome, "cause": row.cause_label, "startTime": row.created_at, "endTime": row.ended_at},
            ),
        )


def _policy_versions(keys: list[uuid.UUID], workspace: str) -> Rows:
    for row in PolicyVersion.objects.filter(pk__in=keys).select_related("policy", "proposed_by").defer("document"):
        yield (
            row.pk,
            Described(
                label=row.label,
                url=reverse("policy-version", args=[workspace, row.policy.slug, str(row.number)]),
                when=row.created_at,
                by=row.proposed_by.label,
                public_id=row.public_id,
                attributes={"version": row.number, "status": row.status, "contentHash": row.content_hash},
            ),
        )


def _memory_entries(keys: list[uuid.UUID], workspace: str) -> Rows:
    """Its text and configuration stay on its page, where its trust stands beside them."""
    for row in MemoryEntry.objects.filter(pk__in=keys).select_related("author").defer("text", "configuration"):
        yield (
            row.pk,
            Described(
                label=row.title,
                url=reverse("memory", args=[workspace, row.public_id]),
                lineage_url=reverse("memory-lineage", args=[workspace, row.public_id]),
                when=row.created_at,
                by=row.author.label if row.author else "",
                doubt=NOT_VOUCHED if row.trust == Trust.UNREVIEWED else "",
                public_id=row.public_id,
                attributes={
                    "kind": row.kind,
                    "trust": row.trust,
                    "revision": row.revision,
                    "authorKind": row.author_kind,
                    "contentHash": row.content_hash,
                },
            ),
        )


def _imports(keys: list[uuid.UUID], workspace: str) -> Rows:
    for row in DatasetImport.objects.filter(pk__in=keys).select_related("dataset", "requested_by").defer("sources", "found"):
        yield (
            row.pk,
            Described(
                label=row.label,
                url=reverse("dataset-import", args=[workspace, row.dataset.slug, row.public_id]),
                when=row.ended_at or row.created_at,
                by=row.requested_by.label,
                public_id=row.public_id,
                attributes={"source": row.source, "startTime": row.began_at, "endTime": row.ended_at},
            ),
        )


def _dataset_sources(keys: list[uuid.UUID], workspace: str) -> Rows:
    """Where a version is said to be from. It leads to the version's page, never to the address: that is what somebody wrote."""
    for row in DatasetVersion.objects.filter(pk__in=keys).select_related("dataset"):
        yield (
            row.pk,
            Described(
                label=row.source or "not said",
                url=f"{reverse('dataset', args=[workspace, row.dataset.slug])}?version={row.number}",
                public_id=f"source_{row.pk.hex}",
                attributes={"source": row.source or None, "origin": row.origin or None, "licence": row.licence or None},
            ),
        )


def _benchmark_sources(keys: list[uuid.UUID], workspace: str) -> Rows:
    for row in Benchmark.objects.filter(pk__in=keys):
        source = row.source
        yield (
            row.pk,
            Described(
                label=f"{source.get('benchmark', '')} of {source.get('workspace', '')}",
                url=reverse("benchmark", args=[workspace, row.slug]),
                public_id=f"source_{row.pk.hex}",
                attributes={name: source.get(name) for name in ("workspace_id", "benchmark_id")} | {"state": row.source_state or None},
            ),
        )


DECIDED_READERS: dict[NodeKind, Callable[[list[uuid.UUID], str], Rows]] = {
    K.PROMOTION: _promotions,
    K.SWEEP: _sweeps,
    K.DECISION: _decisions,
    K.POLICY_VERSION: _policy_versions,
    K.MEMORY: _memory_entries,
    K.IMPORT: _imports,
    K.DATASET_SOURCE: _dataset_sources,
    K.BENCHMARK_SOURCE: _benchmark_sources,
}
