"""Files of workspaces, named by their content, in the store of the workspace's region: a folder of this machine or a bucket of S3.

A name always holds exactly the bytes that it says, or nothing: what is half written is never seen under it. Whoever needs a file as a file, to stage
or to read it record by record, asks `local_path`, which fetches and checks it where the store is elsewhere.
"""

import os
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Protocol

from django.conf import settings

from workspaces.bucket import Bucket
from workspaces.damage import note_damage
from workspaces.local_store import CHUNK, LocalStore, StoreAway, StoreDamaged, StoreFull, StoreMissing, checked

__all__ = ["CHUNK", "LocalStore", "Store", "StoreAway", "StoreDamaged", "StoreFull", "StoreMissing", "store_of"]


class Store(Protocol):
    """What a region's store can do; `sha256` is 64 lower-case hex digits."""

    def put_stream(self, workspace_id: uuid.UUID, chunks: Iterable[bytes]) -> tuple[str, int]: ...
    def open(self, workspace_id: uuid.UUID, sha256: str, *, start: int = 0, end: int | None = None) -> Iterator[bytes]: ...
    def local_path(self, workspace_id: uuid.UUID, sha256: str) -> Path | None: ...
    def exists(self, workspace_id: uuid.UUID, sha256: str) -> bool: ...
    def size(self, workspace_id: uuid.UUID, sha256: str) -> int | None: ...
    def renew(self, workspace_id: uuid.UUID, sha256: str) -> bool: ...
    def remove_old(self, workspace_id: uuid.UUID, sha256: str, *, older_than_seconds: float) -> bool: ...
    def hashes(self, workspace_id: uuid.UUID, *, older_than_seconds: float) -> Iterator[str]: ...
    def tidy_incoming(self, workspace_id: uuid.UUID, *, older_than_seconds: float) -> int: ...


def store_of(region: str) -> Store:
    """The store of a region of the settings; KeyError names a region that is not configured."""
    place = settings.LABSITE_REGIONS[region]
    if not isinstance(place, Bucket):
        return LocalStore(Path(place))
    from workspaces.s3_store import bucket_store  # noqa: PLC0415  # its library costs each process 4 MB: only those that have buckets

    return bucket_store(place, os.getpid())


# The same, by the name of the region, as callers mostly have it.


def put_stream(region: str, workspace_id: uuid.UUID, chunks: Iterable[bytes]) -> tuple[str, int]:
    return store_of(region).put_stream(workspace_id, chunks)


def takes_file(region: str, workspace_id: uuid.UUID, place: Path) -> bool:
    """Whether `put_file` can move in what lies at `place`: not into a bucket, nor from another disk."""
    found = store_of(region)
    return isinstance(found, LocalStore) and found.takes_file(workspace_id, place)


def put_file(region: str, workspace_id: uuid.UUID, place: Path, sha256: str) -> None:
    """See `LocalStore.put_file`."""
    found = store_of(region)
    if not isinstance(found, LocalStore):
        raise TypeError("Nothing is moved into a bucket.")
    found.put_file(workspace_id, place, sha256)


def open(region: str, workspace_id: uuid.UUID, sha256: str, *, start: int = 0, end: int | None = None) -> Iterator[bytes]:  # noqa: A001  # read as store.open(...)
    """See `Store.open`. A file that is read from beginning to end is hashed on the way: where it is not what its name says, StoreDamaged is raised in
    place of its last piece, and the damage is noted. Of a part nothing can be told."""
    pieces = store_of(region).open(workspace_id, sha256, start=start, end=end)
    return _noted(region, workspace_id, sha256, pieces) if start == 0 and end is None else pieces


def _noted(region: str, workspace_id: uuid.UUID, sha256: str, pieces: Iterator[bytes]) -> Iterator[bytes]:
    try:
        yield from checked(pieces, sha256)
    except StoreDamaged:
        note_damage(region, workspace_id, sha256)
        raise


def local_path(region: str, workspace_id: uuid.UUID, sha256: str) -> Path | None:
    """See `Store.local_path`. None also for a file that turned out, while it was fetched, to be damaged; that is noted."""
    try:
        return store_of(region).local_path(workspace_id, sha256)
    except StoreDamaged:
        note_damage(region, workspace_id, sha256)
        return None


def exists(region: str, workspace_id: uuid.UUID, sha256: str) -> bool:
    return store_of(region).exists(workspace_id, sha256)


def renew(region: str, workspace_id: uuid.UUID, sha256: str) -> bool:
    return store_of(region).renew(workspace_id, sha256)
