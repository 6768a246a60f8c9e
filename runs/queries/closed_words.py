"""Where words of runs have gone that read something restricted: into memory, and into what policies knew as they decided.

`Closed` is found once for an export and handed on; `runs.queries.export_closed` says what of which table is withheld for it.
"""

import uuid
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from django.db.models import Q

from runs.models import Artifact, Decision, MemoryEntry, UndeclaredInput
from runs.queries.memory import memory_of
from workspaces.models import Dataset

RESTRICTED = Dataset.Egress.RESTRICTED


@dataclass(frozen=True, slots=True)
class Closed:
    """Keys of what holds words of closed runs: the runs themselves, revisions of memory, decisions of policies."""

    runs: Collection[uuid.UUID] = ()
    entries: Collection[uuid.UUID] = ()
    decisions: Collection[uuid.UUID] = ()


def closed_by(runs: Collection[uuid.UUID]) -> Closed:
    """What holds words of these runs, or rests on them. What a policy writes repeats what its decision knew, and the next decision may know that."""
    entries = _revisions(_told_by(runs))
    if not runs and not entries:
        return Closed()
    known = _known(runs)
    decisions = {key for key, (is_told, _) in known.items() if is_told}
    while True:
        entries |= _revisions({memory_of(Decision(pk=key)) for key in decisions} - entries)
        fresh = {key for key, (_, read) in known.items() if key not in decisions and not read.isdisjoint(entries)}
        if not fresh:
            return Closed(runs, entries, decisions)
        decisions |= fresh


def _told_by(runs: Collection[uuid.UUID]) -> set[uuid.UUID]:
    """Entries that a closed run wrote, and those that rest on one, on what it made or measured, or on a restricted dataset, whoever wrote them."""
    ways = [Q(**{f"{way}__in": runs}) for way in ("run", "evidence__run", "evidence__evaluation__run", "evidence__artifact__run")]
    ways.append(Q(evidence__dataset_version__dataset__egress=RESTRICTED))
    return {key for way in ways for key in MemoryEntry.objects.filter(way).values_list("pk", flat=True)}


def _revisions(entries: set[uuid.UUID]) -> set[uuid.UUID]:
    """All revisions of these: a later one says again what an earlier one said."""
    threads = MemoryEntry.objects.filter(pk__in=entries).values("thread")
    return set(MemoryEntry.objects.filter(thread__in=threads).values_list("pk", flat=True))


def _known(runs: Collection[uuid.UUID]) -> dict[uuid.UUID, tuple[bool, set[uuid.UUID]]]:
    """Of decisions that knew more than figures: was it about what a closed run made, or told what one had read unsaid; and the entries that lay
    before it, also those that it left aside, of which there is no receipt."""
    unsaid = {row.name for row in UndeclaredInput.objects.filter(run__in=runs)}
    made = {key.hex for key in Artifact.objects.filter(run__in=runs).values_list("pk", flat=True)}
    facts = ("facts__memory", "facts__gates__chain__undeclared__named", "facts__candidate__artifact")
    found = {}
    rows = Decision.objects.values_list("pk", "cause_type", "cause_id", *facts)
    for key, cause_type, cause_id, memory, named, candidate in rows.iterator(chunk_size=100):
        read = _read(memory) | ({cause_id} if cause_type == "memory entry" else set())
        is_told = candidate in made or not unsaid.isdisjoint(named or ())
        if read or is_told:
            found[key] = (is_told, read)
    return found


def _read(memory: dict[str, Any] | None) -> set[uuid.UUID]:
    parts = (memory, memory.get("preferred")) if memory else ()
    return {uuid.UUID(entry["id"]) for part in parts if part for entry in part["entries"]}
