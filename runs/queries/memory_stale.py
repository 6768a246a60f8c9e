"""Why memory may not hold any more: computed as it is asked, never kept. And who lives on it (features 65, 67)."""

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from django.db.models import F, Max, OuterRef, Q, Subquery
from django.utils import timezone

from runs.lifecycle import TERMINAL
from runs.models import Decision, MemoryEntry, MemoryEvidence, MemoryRead, Policy, Run, Trust
from workspaces.models import Contract, DatasetVersion
from workspaces.queries.withdrawal import standing_on

MOST_READS = 2_000


@dataclass(frozen=True, slots=True)
class Stale:
    """One reason, in words."""

    why: Literal["age", "source_changed", "source_withdrawn", "withdrawn", "superseded"]
    words: str


def staleness_of(entries: Sequence[MemoryEntry], *, now: datetime | None = None) -> dict[uuid.UUID, list[Stale]]:
    """Of each entry that is stale its reasons; one that is not is left out. A fixed number of queries."""
    moment = now or timezone.now()
    keys = [entry.pk for entry in entries]
    evidence = list(
        MemoryEvidence.objects.filter(entry__in=keys).select_related("dataset_version__dataset", "evaluation__contract__benchmark")
    )
    found: dict[uuid.UUID, list[Stale]] = {}
    for entry in entries:
        found[entry.pk] = _by_age(entry, moment)
    for entry_id, stale in (*_by_change(evidence), *_by_withdrawal(entries, evidence)):
        found[entry_id].append(stale)
    return {key: reasons for key, reasons in found.items() if reasons}


def _by_age(entry: MemoryEntry, now: datetime) -> list[Stale]:
    found = []
    if entry.valid_until is not None and entry.valid_until <= now:
        found.append(Stale("age", f"It held until {entry.valid_until:%d %b %Y}."))
    if entry.review_due is not None and entry.review_due <= now:
        found.append(Stale("age", f"It was to be reviewed by {entry.review_due:%d %b %Y}."))
    return found


def _by_change(evidence: Iterable[MemoryEvidence]) -> Iterable[tuple[uuid.UUID, Stale]]:
    """A newer version of a dataset that it rests on, a newer contract than that of a score."""
    rows = list(evidence)
    datasets = {row.dataset_version.dataset_id for row in rows if row.dataset_version is not None}
    benchmarks = {
        row.evaluation.contract.benchmark_id for row in rows if row.evaluation is not None and row.evaluation.contract is not None
    }
    newest = dict(
        DatasetVersion.objects.filter(dataset__in=datasets).values_list("dataset").annotate(last=Max("number")).order_by()
        if datasets
        else ()
    )
    current = dict(
        Contract.objects.filter(benchmark__in=benchmarks).values_list("benchmark").annotate(last=Max("version")).order_by()
        if benchmarks
        else ()
    )
    for row in rows:
        version = row.dataset_version
        if version is not None and newest.get(version.dataset_id, 0) > version.number:
            words = f"It rests on {version.dataset.slug}@{version.number}; version {newest[version.dataset_id]} is the newest."
            yield row.entry_id, Stale("source_changed", words)
        contract = row.evaluation.contract if row.evaluation is not None else None
        if contract is not None and current.get(contract.benchmark_id, 0) > contract.version:
            holds = f"{contract.benchmark.slug} has contract {current[contract.benchmark_id]} by now"
            words = f"{row.named[:120]} was measured under contract {contract.version}; {holds}."
            yield row.entry_id, Stale("source_changed", words)


def _by_withdrawal(entries: Iterable[MemoryEntry], evidence: Iterable[MemoryEvidence]) -> Iterable[tuple[uuid.UUID, Stale]]:
    """What it rests on, or the run that wrote it, was withdrawn, or rests on what was."""
    rests = {(entry.pk, "run", entry.run_id): "the run that wrote it" for entry in entries if entry.run_id is not None}
    rests |= {(row.entry_id, row.kind, row.subject_id): row.named for row in evidence}
    marked = standing_on((kind, key) for _, kind, key in rests)
    for (entry_id, kind, key), named in rests.items():
        for withdrawal in marked.get((kind, key), ()):
            yield (
                entry_id,
                Stale(
                    "source_withdrawn",
                    f"{named[:120]} rests on {withdrawal.subject_label[:120]}, which is withdrawn: {withdrawal.reason[:300]}",
                ),
            )


# --- Who lives on it ------------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Living:
    """A policy that acts, or a run that is not over, and the entry that it read; `reasons` say why that may not hold any more."""

    read: MemoryRead
    entry: MemoryEntry
    reasons: tuple[Stale, ...]
    policy: Policy | None = None
    run: Run | None = None


def living_on_stale() -> tuple[list[Living], bool]:
    """Policies whose version acts, by what their newest decision read, and runs that are not over, by what they read, where it is stale now; the
    second says whether all were looked at. An entry that was withdrawn or revised since counts as well."""
    asked_memory = Q(memory_read__isnull=False) | Q(facts__memory__has_key="entries")  # also one that left aside all that it found
    newest = Decision.objects.filter(asked_memory, policy=OuterRef("decision__policy")).order_by("-number").values("pk")[:1]
    acting = Q(decision__policy__status=Policy.Status.ACTIVE, decision__policy__versions__status="active", decision=Subquery(newest))
    at_work = Q(run__isnull=False) & ~Q(run__status__in=sorted(TERMINAL))
    rows = (
        MemoryRead.objects.filter(acting | at_work)
        .select_related("entry", "decision__policy", "run")
        .distinct()
        .order_by("-created_at", "-pk")
    )
    reads = list(rows[: MOST_READS + 1])
    entries = list({read.entry_id: read.entry for read in reads}.values())
    reasons = staleness_of(entries)
    found: dict[tuple[uuid.UUID | None, uuid.UUID | None, uuid.UUID], Living] = {}
    for read in reads[:MOST_READS]:
        why = (*_gone(read.entry), *reasons.get(read.entry_id, ()))
        policy = read.decision.policy if read.decision is not None else None
        if why:
            found.setdefault((policy.pk if policy else None, read.run_id, read.entry_id), Living(read, read.entry, why, policy, read.run))
    return list(found.values()), len(reads) <= MOST_READS


def _gone(entry: MemoryEntry) -> Iterable[Stale]:
    if entry.trust == Trust.WITHDRAWN:
        yield Stale("withdrawn", f"It is withdrawn: {entry.withdrawn_reason}")
    if entry.superseded_at is not None:
        yield Stale("superseded", f"Revision {entry.revision} was replaced {entry.superseded_at:%d %b %Y}.")


@dataclass(frozen=True, slots=True)
class Touched:
    """Who would be touched if an entry were withdrawn: all that read any revision of it, counted; the newest by name."""

    reads: list[MemoryRead]
    runs: int
    policies: int
    people: int


def touched_by(entry: MemoryEntry, *, shown: int = 50) -> Touched:
    rows = MemoryRead.objects.filter(entry__thread=entry.thread)
    readers = rows.annotate(policy_id=F("decision__policy"))
    return Touched(
        reads=list(rows.select_related("entry", "run", "decision__policy", "person").order_by("-created_at", "-pk")[:shown]),
        runs=readers.exclude(run=None).values("run").distinct().count(),
        policies=readers.exclude(policy_id=None).values("policy_id").distinct().count(),
        people=readers.exclude(person=None).values("person").distinct().count(),
    )
