"""Files in the store and the rows that name them: receiving bytes before a command, keeping them within one, the storage limit, tidying up.

Bytes are received outside any transaction; the command that follows writes the rows. A file that no command has named stays for a day.
"""

import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Protocol

from django.db.models import Sum
from django.utils import timezone

from workspaces import kept_query, scope, store
from workspaces.audit import Draft, Refusal
from workspaces.file_paths import BadPath, clean_path, shown_path
from workspaces.hash_beside import HashBeside
from workspaces.models import Blob, Limit, Unit, Workspace
from workspaces.queries.blob_use import is_named
from workspaces.records import RecordCount, counter_for
from workspaces.units import plural, size

ORPHANS_STAY_SECONDS = 86_400.0
AWAY = "The store of this workspace does not answer at the moment. Nothing was kept; send it again in a minute."


@dataclass(frozen=True, slots=True)
class SentFile:
    """A file as it comes; `expected_bytes` is what the sender announced, where they did."""

    path: str
    chunks: Iterable[bytes]
    expected_bytes: int | None = None
    is_executable: bool = False


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file that lies in the store and is not named by a row yet. `records` is None where they cannot be counted."""

    path: str
    sha256: str
    bytes: int
    records: int | None = None
    is_executable: bool = False


class Content(Protocol):
    """A file in the store, as far as its row is concerned."""

    @property
    def path(self) -> str: ...
    @property
    def sha256(self) -> str: ...
    @property
    def bytes(self) -> int: ...


def receive_file(
    path: str,
    chunks: Iterable[bytes],
    *,
    expected_bytes: int | None = None,
    most_bytes: int | None = None,
    has_header: bool = True,
    is_executable: bool = False,
) -> StoredFile:
    """Stream one file into the store of the open workspace. Refuses a bad path, a cut upload, too many bytes, and a full disk.

    `expected_bytes` is what the sender announced; `most_bytes` the most that is taken. Call it outside a transaction.
    """
    file = SentFile(path, chunks, expected_bytes, is_executable)
    return receive_files([file], announced_bytes=expected_bytes or 0, most_bytes=most_bytes, has_header=has_header)[0]


def receive_files(
    files: Iterable[SentFile], *, announced_bytes: int = 0, most_bytes: int | None = None, has_header: bool = True
) -> list[StoredFile]:
    """Stream files into the store of the open workspace, as `receive_file` does with one; the storage limit is asked once, before the first.

    `announced_bytes` is what they have together, as far as it is known.
    """
    workspace = _with_region()
    refuse_over_limit(announced_bytes)
    return [_receive(workspace, file, most_bytes, has_header=has_header) for file in files]


def takes_file(place: Path) -> bool:
    """Whether the store of the open workspace lies on the disk of `place`, so that a file is moved in and not copied."""
    workspace = _with_region()
    return store.takes_file(workspace.region, workspace.pk, place)


def read_file(path: str, chunks: Iterable[bytes], *, expected_bytes: int, has_header: bool = True) -> StoredFile:
    """What `receive_file` says of a file, which stays where it is, for `put_file`."""
    _with_region()
    refuse_over_limit(expected_bytes)
    counter = counter_for(path, has_header=has_header)
    with HashBeside() as digest:
        for chunk in _bounded(path, chunks, expected_bytes, None, counter):
            digest.update(chunk)
        return StoredFile(path, digest.hexdigest(), digest.count, counter.records if counter else None)


def put_file(place: Path, sha256: str) -> None:
    """Move a file that was read into the store. Refuses where that has no room, or is away."""
    workspace = _with_region()
    with _told():
        store.put_file(workspace.region, workspace.pk, place, sha256)


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except store.StoreFull as error:
        raise Refusal("The store has no room left; nothing was kept. Ask a site operator for space.") from error
    except store.StoreAway as error:
        raise Refusal(AWAY) from error


def _with_region() -> Workspace:
    workspace = Workspace.objects.get(pk=scope.current_id())
    if not workspace.region:
        raise Refusal(f"{workspace.name} has no storage region yet; choose one in its settings, then upload again.")
    return workspace


def _receive(workspace: Workspace, file: SentFile, most_bytes: int | None, *, has_header: bool) -> StoredFile:
    try:
        path = clean_path(file.path)
    except BadPath as error:
        raise Refusal(str(error), field="path") from error
    counter = counter_for(path, has_header=has_header)
    chunks = _bounded(path, file.chunks, file.expected_bytes, most_bytes, counter)
    with _told():
        sha256, count = store.put_stream(workspace.region, workspace.pk, chunks)
    return StoredFile(path, sha256, count, counter.records if counter else None, file.is_executable)


def _bounded(
    path: str, chunks: Iterable[bytes], expected_bytes: int | None, most_bytes: int | None, counter: RecordCount | None
) -> Iterator[bytes]:
    count = 0
    for chunk in chunks:
        count += len(chunk)
        if most_bytes is not None and count > most_bytes:
            raise Refusal(
                f"{shown_path(path)} has more than {size(most_bytes)}, the most that one upload takes; nothing was kept.", field="file"
            )
        if counter is not None:
            counter.feed(chunk)
        yield chunk
    if expected_bytes is not None and count != expected_bytes:
        announced, came = plural(expected_bytes, "byte", "bytes"), plural(count, "byte", "bytes")
        raise Refusal(
            f"The upload of {shown_path(path)} was cut: {announced} were announced, {came} came. Nothing was kept; send it again."
        )


def keep_blobs(event: Draft, files: Iterable[Content], *, is_limited: bool = True) -> dict[str, Blob]:
    """Within a command: the rows of stored files by hash, made where the content is new here and counted against the storage limit, in a few
    statements however many there are.

    Each is made young in the store before its row is written, so that tidying up leaves it until the command has committed. Refuses a file that
    is no longer there. `is_limited=False` does not ask the limit: what a run has made already is not thrown away for it.
    """
    sent = {file.sha256: file for file in files}
    # Locked, in one order: what lets go of the last row that names a file waits for us, or we for it.
    known = {blob.sha256: blob for blob in Blob.objects.filter(sha256__in=list(sent)).select_for_update(no_key=True).order_by("pk")}
    rows = {sha256: blob for sha256, blob in known.items() if blob.removed_at is None}
    fresh = [file for sha256, file in sent.items() if sha256 not in rows]
    if not fresh:
        return rows
    workspace = Workspace.objects.get(pk=scope.current_id())
    for file in fresh:
        try:
            is_there = store.renew(workspace.region, workspace.pk, file.sha256)
        except store.StoreAway as error:
            raise Refusal(AWAY) from error
        if not is_there:
            raise Refusal(f"{shown_path(file.path)} is no longer in the store; upload it again.")
    warning = refuse_over_limit(sum(file.bytes for file in fresh), lock=True) if is_limited else ""
    if warning:
        event.details["warning"] = warning
    for file in fresh:
        if file.sha256 in known:
            event.change(known[file.sha256], removed_at=None, missing_at=None)
    made = [Blob(sha256=file.sha256, bytes=file.bytes, region=workspace.region) for file in fresh if file.sha256 not in known]
    Blob.objects.bulk_create(made, ignore_conflicts=True)  # another command may have named the same content this moment
    ours = {blob.pk for blob in made}
    found = list(Blob.objects.filter(sha256__in=[file.sha256 for file in fresh]))
    event.created(*(blob for blob in found if blob.pk in ours))
    return rows | {blob.sha256: blob for blob in found}


def lock_blob(blob_id: uuid.UUID) -> Blob:
    """Within a command: the row of a stored file, against whoever would name it or let go of it meanwhile."""
    return Blob.objects.select_for_update(no_key=True).get(pk=blob_id)


def release_blob(event: Draft, blob: Blob) -> bool:
    """Within a command, the row locked by `lock_blob`: let go of a file. It is counted no more once the command has committed; then call
    `drop_file`, or leave that to the next tidying up. False where anything of either floor still names it, so that it stays."""
    if blob.removed_at is not None or is_named(blob):
        return False
    event.change(blob, removed_at=timezone.now())
    return True


def drop_file(blob: Blob, *, released_after: float) -> bool:
    """Remove the file of a released row from the store; False where it was put anew since `released_after` (seconds UTC, before the command began),
    or is gone, or the store does not answer. What is left by a process that dies before this, or by such a store, goes with the next tidying up."""
    place = store.store_of(blob.region)
    try:
        return place.remove_old(scope.current_id(), blob.sha256, older_than_seconds=time.time() - released_after)
    except store.StoreAway:
        return False


def stored_bytes() -> int:
    """Bytes that the workspace's rows name, each content once."""
    return int(Blob.objects.filter(removed_at=None).aggregate(total=Sum("bytes"))["total"] or 0)


def room_left() -> int | None:
    """Bytes that a hard stop of storage leaves; None without one. Below 0 where the store is over it."""
    stops = kept_query.rows(Limit, unit=Unit.STORAGE_BYTES.value, mode=Limit.Mode.STOP.value)
    return min(stop.amount for stop in stops) - stored_bytes() if stops else None


def refuse_over_limit(more_bytes: int, *, lock: bool = False) -> str:
    """Refuse where `more_bytes` would pass a storage limit; returns a sentence where they pass one that only warns, else nothing.

    One that asks for approval holds launches while the store is over it; bytes that arrive cannot be held, so they are refused with these words.
    `lock` holds the limits until the command ends, so that two uploads cannot both take the last room.
    """
    rows = Limit.objects.filter(unit=Unit.STORAGE_BYTES).order_by("amount")
    limits = list(rows.select_for_update(no_key=True) if lock else rows)
    used = stored_bytes() if limits else 0
    warning = ""
    for limit in limits:
        over = used + more_bytes - limit.amount
        if over <= 0:
            continue
        sentence = f"{size(more_bytes)} more would make {size(used + more_bytes)} of {size(limit.amount)} of storage."
        if limit.mode == Limit.Mode.WARN:
            warning = sentence
        elif limit.mode == Limit.Mode.APPROVAL:
            raise Refusal(
                f"{sentence} This limit asks for approval, and bytes that arrive cannot wait for one, so nothing was kept. Ask whoever manages "
                f"the budget for {size(over)} more, then send them again."
            )
        else:
            raise Refusal(f"{sentence} Free {size(over)}, or ask for a larger storage limit.")
    return warning


def tidy_store() -> int:
    """Remove from the open workspace's store what is older than a day and named by no row; returns how many files. Writes no row.

    A file that is named while this runs is left: whoever names it makes it young first, and the store looks at its age again as it removes it.
    """
    workspace = Workspace.objects.get(pk=scope.current_id())
    if not workspace.region:
        return 0
    place = store.store_of(workspace.region)
    count = place.tidy_incoming(workspace.pk, older_than_seconds=ORPHANS_STAY_SECONDS)
    return count + sum(place.remove_old(workspace.pk, sha256, older_than_seconds=ORPHANS_STAY_SECONDS) for sha256 in stray_files())


def stray_files() -> Iterator[str]:
    """SHA-256 of the files in the open workspace's store that are older than a day and that no row names."""
    workspace = Workspace.objects.get(pk=scope.current_id())
    if not workspace.region:
        return
    old = store.store_of(workspace.region).hashes(workspace.pk, older_than_seconds=ORPHANS_STAY_SECONDS)
    while batch := list(islice(old, 1000)):
        named = set(Blob.objects.filter(sha256__in=batch, removed_at=None).values_list("sha256", flat=True))
        yield from (sha256 for sha256 in batch if sha256 not in named)
