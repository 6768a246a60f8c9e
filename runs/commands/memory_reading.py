"""Reading memory leaves a receipt: who, which revision, at which trust (feature 66)."""

from collections.abc import Sequence

from runs.commands.report import own_attempt
from runs.models import Decision, MemoryEntry, MemoryRead, Run
from runs.queries.memory_recall import Wanted, recall
from workspaces.access import Actor
from workspaces.audit import Draft, command
from workspaces.models import User
from workspaces.verbs import Verb


def note_reads(
    event: Draft, entries: Sequence[MemoryEntry], *, run: Run | None = None, decision: Decision | None = None, person: User | None = None
) -> list[MemoryRead]:
    """Receipts of what was read, with the trust that each entry had as it was read; part of the command of whoever read."""
    reads = [MemoryRead(entry=entry, trust=entry.trust, run=run, decision=decision, person=person) for entry in entries]
    MemoryRead.objects.bulk_create(reads)
    event.created(*reads)
    return reads


def read_memory(
    event: Draft, *, wanted: Wanted, run: Run | None = None, decision: Decision | None = None, person: User | None = None
) -> list[MemoryEntry]:
    """What `wanted` finds, most trusted first, with a receipt for each. For a decision failed attempts are left out (feature 69)."""
    entries = recall(wanted, for_policy=decision is not None)
    note_reads(event, entries, run=run, decision=decision, person=person)
    return entries


@command(
    Verb.MEMORY_READ,
    needs=None,
    public_reason="the token of the one run, checked first thing",
    in_archive="a run that was let go on may read what it rests on",
)
def read_run_memory(event: Draft, *, actor: Actor, run: Run, wanted: Wanted) -> list[MemoryEntry]:
    """What a run reads with its own token while it runs."""
    own_attempt(actor, Run.objects.select_for_update(no_key=True).get(pk=run.pk))
    event.about = run
    event.details["asked"] = {"collection": wanted.collection, "text": wanted.text, "least": str(wanted.least), "most": wanted.most}
    return read_memory(event, wanted=wanted, run=run)
