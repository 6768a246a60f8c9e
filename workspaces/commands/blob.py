"""Files in the store and the rows that name them: receiving bytes before a command, keeping them within one, the storage limit, the sweep.

Bytes are received outside any transaction; the command that follows writes the rows. A file that no command has named stays for a day.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from django.db.models import Sum

from workspaces import scope, store
from workspaces.audit import Draft, Refusal
from workspaces.file_paths import BadPath, clean_path, shown_path
from workspaces.models import Blob, Limit, Unit, Workspace
from workspaces.records import RecordCount, counter_for
from workspaces.units import plural, size

ORPHANS_STAY_SECONDS = 86_400.0


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file that lies in the store and is not named by a row yet. `records` is None where they cannot be counted."""

    path: str
    sha256: str
    bytes: int
    records: int | None = None
    is_executable: bool = False


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
    try:
        path = clean_path(path)
    except BadPath as error:
        raise Refusal(str(error), field="path") from error
    workspace = Workspace.objects.get(pk=scope.current_id())
    if not workspace.region:
        raise Refusal(f"{workspace.name} has no storage region yet; choose one in its settings, then upload again.")
    refuse_over_limit(expected_bytes or 0)
    counter = counter_for(path, has_header=has_header)
    try:
        sha256, count = store.put_stream(workspace.region, workspace.pk, _bounded(path, chunks, expected_bytes, most_bytes, counter))
    except store.StoreFull as error:
        raise Refusal("The store has no room left; nothing was kept. Ask a site operator for space.") from error
    return StoredFile(path, sha256, count, counter.records if counter else None, is_executable)


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


def keep_blob(event: Draft, sha256: str, bytes: int, *, is_bound: bool = True) -> Blob:  # noqa: A002  # the word of the column
    """Within a command: the row of a stored file, made where the content is new here, and counted against the storage limit.

    `is_bound=False` counts and warns only: what a run has made already is not thrown away for a limit.
    """
    found = Blob.objects.filter(sha256=sha256).first()
    if found is not None:
        return found
    workspace = Workspace.objects.get(pk=scope.current_id())
    if not store.exists(workspace.region, workspace.pk, sha256):
        raise Refusal("The file is no longer in the store; upload it again.")
    warning = refuse_over_limit(bytes, lock=True) if is_bound else ""
    if warning:
        event.details["warning"] = warning
    blob, is_new = Blob.objects.get_or_create(sha256=sha256, defaults={"bytes": bytes, "region": workspace.region})
    if is_new:
        event.created(blob)
    return blob


def stored_bytes() -> int:
    """Bytes that the workspace's rows name, each content once."""
    return int(Blob.objects.aggregate(total=Sum("bytes"))["total"] or 0)


def refuse_over_limit(more_bytes: int, *, lock: bool = False) -> str:
    """Refuse where `more_bytes` would pass a storage limit; returns a sentence where they pass one that only warns, else nothing.

    `lock` holds the limits until the command ends, so that two uploads cannot both take the last room.
    """
    limits = Limit.objects.filter(unit=Unit.STORAGE_BYTES)
    if lock:
        limits = limits.select_for_update(no_key=True)
    warning = ""
    for limit in limits.order_by("amount"):
        used = stored_bytes()
        over = used + more_bytes - limit.amount
        if over <= 0:
            continue
        sentence = f"{size(more_bytes)} more would make {size(used + more_bytes)} of {size(limit.amount)} of storage."
        if limit.mode == Limit.Mode.WARN:
            warning = sentence
        else:
            raise Refusal(f"{sentence} Free {size(over)}, or ask for a larger storage limit.")
    return warning


def sweep_store() -> int:
    """Remove from the open workspace's store what is older than a day and named by no row; returns how many files. Writes no row."""
    workspace = Workspace.objects.get(pk=scope.current_id())
    if not workspace.region:
        return 0
    place = store.store_of(workspace.region)
    count = place.sweep_incoming(workspace.pk, older_than_seconds=ORPHANS_STAY_SECONDS)
    old = place.hashes(workspace.pk, older_than_seconds=ORPHANS_STAY_SECONDS)
    while batch := list(islice(old, 1000)):
        named = set(Blob.objects.filter(sha256__in=batch).values_list("sha256", flat=True))
        for sha256 in batch:
            if sha256 not in named:
                place.remove(workspace.pk, sha256)
                count += 1
    return count
