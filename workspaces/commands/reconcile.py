"""Do the stored files lie where their rows say, as long as they say? What is missing is put on record, and what is found again too. A file whose
bytes are not those of its hash is as good as missing: it is never handed out.

The other way round, files that no row names, is `tidy_store` (workspaces/commands/blob.py); a row that nothing names is let go of here.
"""

import uuid
from collections.abc import Collection
from dataclasses import dataclass

from django.utils import timezone

from workspaces import scope, store
from workspaces.access import Actor
from workspaces.audit import Draft, Refusal, command
from workspaces.damage import forget_damage, noted_damage
from workspaces.models import Blob, Workspace
from workspaces.queries.blob_use import unnamed
from workspaces.store import store_of
from workspaces.units import plural, size
from workspaces.verbs import Verb

AT_ONCE = 500  # rows of one command


@dataclass(frozen=True, slots=True)
class Compared:
    """`looked` rows were compared; files of `missing` are not there or not as long as their rows say, those of `found` are there again. `known` are
    those that were missing before and still are."""

    looked: int
    missing: list[Blob]
    found: list[Blob]
    known: list[Blob]


def compare_files() -> Compared:
    """Look for the file of each row of the open workspace: its name and length, and of one that was missing or damaged its content too. Writes
    nothing."""
    missing: list[Blob] = []
    found: list[Blob] = []
    known: list[Blob] = []
    looked = 0
    for blob in Blob.objects.filter(removed_at=None).order_by("pk").iterator(chunk_size=1000):
        looked += 1
        is_there = store_of(blob.region).size(scope.current_id(), blob.sha256) == blob.bytes and (blob.missing_at is None or is_whole(blob))
        if is_there and blob.missing_at is not None:
            found.append(blob)
        elif not is_there and blob.missing_at is None:
            missing.append(blob)
        elif not is_there:
            known.append(blob)
    return Compared(looked, missing, found, known)


def is_whole(blob: Blob) -> bool:
    """Does the file hold the bytes that its row names? Reads all of it: call it outside a transaction."""
    try:
        return sum(map(len, store.open(blob.region, scope.current_id(), blob.sha256))) == blob.bytes
    except (store.StoreMissing, store.StoreDamaged):
        return False


def recheck_files(actor: Actor) -> list[Blob]:
    """Read the files that were found damaged as somebody read them, and put on record those that are; returns them."""
    noted = noted_damage(scope.current_id())
    damaged = (
        [blob for blob in Blob.objects.filter(sha256__in=noted, removed_at=None, missing_at=None) if not is_whole(blob)] if noted else []
    )
    if damaged:
        record_files(actor=actor, missing=damaged, found=[])
    if noted:
        forget_damage(scope.current_id())
    return damaged


def reconcile_files(actor: Actor) -> Compared:
    """Compare, and put on record what has changed since the last time; nothing is written where nothing has."""
    compared = compare_files()
    for start in range(0, max(len(compared.missing), len(compared.found)), AT_ONCE):
        end = start + AT_ONCE
        record_files(actor=actor, missing=compared.missing[start:end], found=compared.found[start:end])
    return compared


@command(Verb.WORKSPACE_FILES_RECONCILED, needs=None, by_system=True, in_archive="what an archive has lost has to be known")
def record_files(event: Draft, *, actor: Actor, missing: Collection[Blob], found: Collection[Blob]) -> None:
    """Mark the rows whose files are missing, and unmark those that are there again."""
    if not missing and not found:
        raise Refusal("Nothing has changed.")
    event.about = Workspace.objects.get(pk=scope.current_id())
    keys = [blob.pk for blob in (*missing, *found)]
    rows = list(Blob.objects.select_for_update(no_key=True).filter(pk__in=keys, removed_at=None).order_by("pk"))
    event.changing(*rows)
    gone = {blob.pk for blob in missing}
    now = timezone.now()
    for row in rows:
        row.missing_at = now if row.pk in gone else None
    Blob.objects.bulk_update(rows, ["missing_at"])
    event.details |= {
        "missing": [row.sha256 for row in rows if row.missing_at],
        "found": [row.sha256 for row in rows if not row.missing_at],
    }
    event.reason = f"{plural(len(missing), 'file is', 'files are')} missing or damaged, {plural(len(found), 'is', 'are')} there again."


def free_unnamed(actor: Actor) -> int:
    """Let go of the rows that nothing names: what was forgotten as something else took its place counts no more. Their files go with the next tidying
    up. Refuses in an archive, which keeps all."""
    keys = list(unnamed().values_list("pk", flat=True))
    for start in range(0, len(keys), AT_ONCE):
        _release(actor=actor, keys=keys[start : start + AT_ONCE])
    return len(keys)


@command(Verb.WORKSPACE_FILES_RECONCILED, needs=None, by_system=True)
def _release(event: Draft, *, actor: Actor, keys: Collection[uuid.UUID]) -> None:
    event.about = Workspace.objects.get(pk=scope.current_id())
    # Locked first, then asked again: whoever names one of them meanwhile has locked it, and is done.
    locked = [blob.pk for blob in Blob.objects.select_for_update(no_key=True).filter(pk__in=keys).order_by("pk")]
    rows = list(unnamed().filter(pk__in=locked))
    if not rows:
        raise Refusal("Each of them is named by now.")
    event.changing(*rows)
    for row in rows:
        row.removed_at = timezone.now()
    Blob.objects.bulk_update(rows, ["removed_at"])
    event.details["released"] = [row.sha256 for row in rows]
    event.reason = f"{plural(len(rows), 'file', 'files')} that nothing names any more, {size(sum(row.bytes for row in rows))}."
