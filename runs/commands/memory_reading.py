"""Reading memory leaves a receipt: who, which revision, at which trust (feature 66)."""

from collections.abc import Sequence

from runs.commands.report import own_attempt
from runs.models import Decision, MemoryEntry, MemoryRead, Run
from runs.queries.memory_recall import Wanted, recall
from workspaces.access import Actor
from workspaces.audit import Draft, Refusal, command
from workspaces.models import AuditEvent
from workspaces.verbs import Verb

MOST_A_RUN = 1_000  # questions


def note_reads(
    event: Draft, entries: Sequence[MemoryEntry], *, run: Run | None = None, decision: Decision | None = None
) -> list[MemoryRead]:
    """Receipts of what was read, with the trust that each entry had as it was read; part of the command of whoever read. A run that reads a
    revision again at the same trust has its receipt already."""
    kept = set(MemoryRead.objects.filter(run=run, entry__in=entries).values_list("entry_id", "trust")) if run is not None else set()
    fresh = [entry for entry in entries if (entry.pk, entry.trust) not in kept]
    reads = [MemoryRead(entry=entry, trust=entry.trust, run=run, decision=decision) for entry in fresh]
    MemoryRead.objects.bulk_create(reads)
    event.created(*reads)
    return reads


def read_memory(event: Draft, *, wanted: Wanted, run: Run) -> list[MemoryEntry]:
    """What `wanted` finds, most trusted first, with a receipt for each; failed attempts too, which only policies leave out (feature 69)."""
    entries = recall(wanted, for_policy=False)
    note_reads(event, entries, run=run)
    return entries


@command(
    Verb.MEMORY_READ,
    needs=None,
    public_reason="the token of the one run, checked first thing",
    in_archive="a run that was let go on may read what it rests on",
)
def read_run_memory(event: Draft, *, actor: Actor, run: Run, wanted: Wanted) -> list[MemoryEntry]:
    """What a run reads with its own token while it runs; at most 1,000 times, since each stands in the record for good."""
    own_attempt(actor, Run.objects.select_for_update(no_key=True).get(pk=run.pk))
    asked = AuditEvent.objects.filter(subject_id=run.pk, verb=Verb.MEMORY_READ).count()
    if asked >= MOST_A_RUN:
        raise Refusal(
            f"A run may ask memory {MOST_A_RUN:,} times, and {run.name} has. Keep what was answered; it is the same for the same question."
        )
    event.about = run
    event.details["asked"] = {"collection": wanted.collection, "text": wanted.text, "least": str(wanted.least), "most": wanted.most}
    return read_memory(event, wanted=wanted, run=run)
