"""Memory as people see it: grouped by trust, never one flat list; one entry with its history; what is similar to a configuration."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Count, QuerySet

from runs.memory_distance import distance, ranges_of
from runs.models import Decision, MemoryEntry, MemoryEvidence, Trust
from runs.queries.memory_recall import BEST_FIRST
from runs.queries.memory_search import COUNTED_TO, find_words
from runs.queries.memory_stale import Stale, staleness_of
from workspaces.models import DeclaredName
from workspaces.queries.paging import Page, newest_first

IN_A_GROUP = 10
MOST_COMPARED = 2_000
MOST_COLLECTIONS = 100
MOST_DECISIONS = 200


@dataclass(frozen=True, slots=True)
class Row:
    """`apart` is how far its configuration lies from the one that was asked for, 0 to 1; None where none was."""

    entry: MemoryEntry
    stale: tuple[Stale, ...] = ()
    apart: float | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """Entries of one trust. `total` is how many there are, of a search up to 1,000; `is_more` where that many or more match."""

    trust: Trust
    rows: list[Row] = field(default_factory=list)
    total: int = 0
    is_more: bool = False


def standing(*, collection: str = "", kind: str = "") -> "QuerySet[MemoryEntry]":
    rows = MemoryEntry.objects.filter(superseded_at=None)
    rows = rows.filter(collection=collection) if collection else rows
    return rows.filter(kind=kind) if kind else rows


def grouped(*, collection: str = "", kind: str = "") -> list[Group]:
    """The newest of each trust, most trusted first; a trust that no entry has is left out."""
    counts = dict(standing(collection=collection, kind=kind).values_list("trust").annotate(count=Count("pk")).order_by())
    found = {
        trust: list(_shown(standing(collection=collection, kind=kind).filter(trust=trust)).order_by("-created_at", "-pk")[:IN_A_GROUP])
        for trust in BEST_FIRST
        if counts.get(trust)
    }
    stale = staleness_of([entry for entries in found.values() for entry in entries])
    return [Group(trust, [_row(entry, stale) for entry in entries], counts[trust]) for trust, entries in found.items()]


def searched(text: str, *, collection: str = "", kind: str = "") -> list[Group]:
    """The best matches of each trust. Raises Unsearchable."""
    hits = find_words(text, collection=collection, kind=kind, most=IN_A_GROUP)
    entries = _shown(standing()).in_bulk([hit.id for hit in hits])
    stale = staleness_of(list(entries.values()))
    groups = []
    for trust in BEST_FIRST:
        of_trust = [hit for hit in hits if hit.trust == trust and hit.id in entries]
        if of_trust:
            total = of_trust[0].matches
            groups.append(Group(trust, [_row(entries[hit.id], stale) for hit in of_trust], total, is_more=total >= COUNTED_TO))
    return groups


def similar(configuration: Mapping[str, Any], *, collection: str = "") -> list[Group]:
    """The nearest of each trust among the newest 2,000 standing entries that have a configuration (`runs.memory_distance`)."""
    rows = standing(collection=collection).exclude(configuration=None).order_by("-created_at", "-pk")
    known: dict[Any, tuple[str, Mapping[str, Any]]] = {
        pk: (trust, found or {}) for pk, trust, found in rows.values_list("pk", "trust", "configuration")[:MOST_COMPARED]
    }
    ranges = ranges_of([configuration, *(found for _, found in known.values())])
    apart = {pk: distance(configuration, found, ranges) for pk, (_, found) in known.items()}
    nearest = {
        trust: sorted((pk for pk in known if known[pk][0] == trust), key=lambda pk: (apart[pk], pk.hex))[:IN_A_GROUP]
        for trust in BEST_FIRST
    }
    entries = _shown(standing()).in_bulk([pk for keys in nearest.values() for pk in keys])
    stale = staleness_of(list(entries.values()))
    totals = {trust: sum(1 for known_trust, _ in known.values() if known_trust == trust) for trust in BEST_FIRST}
    return [
        Group(trust, [_row(entries[pk], stale, apart[pk]) for pk in keys if pk in entries], totals[trust])
        for trust, keys in nearest.items()
        if keys
    ]


def page_of_trust(trust: str, *, collection: str = "", kind: str = "", cursor: str = "", size: int = 50) -> Page[Row]:
    """All of one trust, newest first. Raises BadCursor."""
    page = newest_first(_shown(standing(collection=collection, kind=kind).filter(trust=trust)), cursor=cursor, size=size)
    stale = staleness_of(page.items)
    return Page([_row(entry, stale) for entry in page.items], page.next)


def collections() -> list[tuple[str, int]]:
    """Collections with how many entries stand in each, those that a declaration named and nobody has filled among them."""
    counts = dict(standing().values_list("collection").annotate(count=Count("pk")).order_by("collection")[:MOST_COLLECTIONS])
    declared = DeclaredName.objects.filter(kind="memory").values_list("slug", flat=True)
    return sorted({**dict.fromkeys(declared, 0), **counts}.items())


@dataclass(frozen=True, slots=True)
class EntryPage:
    entry: MemoryEntry
    evidence: list[MemoryEvidence]
    history: list[MemoryEntry]
    stale: list[Stale]
    decision: Decision | None = None  # by which a policy wrote it

    @property
    def in_words(self) -> str:
        """What an entry is that a policy wrote, which has no words of its own but its title: a sentence from its configuration; empty elsewhere."""
        known = self.entry.configuration
        return f"{self.entry.title}: {', '.join(f'{name} {value}' for name, value in known.items())}." if self.decision and known else ""


def entry_page(entry: MemoryEntry) -> EntryPage:
    evidence = list(entry.evidence.select_related("run", "evaluation", "artifact", "dataset_version__dataset").order_by("pk"))
    history = list(_shown(MemoryEntry.objects.filter(thread=entry.thread)).order_by("-revision")[:50])
    return EntryPage(entry, evidence, history, staleness_of([entry]).get(entry.pk, []), _written_by(entry))


def _written_by(entry: MemoryEntry) -> Decision | None:
    """The entry's id follows from the decision's; it is carried out within a day, so few come into question."""
    if entry.policy_id is None:
        return None
    rows = Decision.objects.filter(policy=entry.policy_id, outcome="acts", created_at__lte=entry.created_at).select_related("policy")
    return next((row for row in rows.order_by("-number")[:MOST_DECISIONS] if memory_of(row) == entry.pk), None)


def memory_of(decision: Decision) -> uuid.UUID:
    """The entry that a decision writes is known before it is: a job that runs twice writes once."""
    return uuid.uuid5(decision.pk, "memory")


def _shown(rows: "QuerySet[MemoryEntry]") -> "QuerySet[MemoryEntry]":
    return rows.select_related("author", "run", "policy", "benchmark", "agent", "reviewed_by")


def _row(entry: MemoryEntry, stale: Mapping[Any, list[Stale]], apart: float | None = None) -> Row:
    return Row(entry, tuple(stale.get(entry.pk, ())), apart)
