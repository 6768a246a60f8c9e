"""Files of workspaces on a disk of this machine, named by their content: `<root>/<workspace hex>/blobs/<first two digits>/<SHA-256>`.

A file is written to `incoming/` under a random name while it is hashed, forced to the disk, and moved into place whole; so a name in `blobs/`
always holds exactly the bytes that it says. No text of a user ever becomes part of a path: only keys and hashes, checked before use.
Modes are 0600 and 0700, and everything is forced to the disk, which obstore's own local store does not do.
"""

import errno
import fcntl
import hashlib
import os
import re
import secrets
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from workspaces.hash_beside import HashBeside

CHUNK = 1_048_576
STEP = 16 * CHUNK  # bytes after which the disk is told to begin
SHA256 = re.compile(r"[0-9a-f]{64}")
NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class StoreFull(OSError):  # an answer for people: there is no room
    """The disk of the region has no room; nothing was kept."""


class StoreAway(OSError):  # an answer for people: it may be there again in a minute
    """The region does not answer, or takes none of our keys; nothing is known of its files."""


class StoreMissing(LookupError):  # an answer: no such file
    """There is no file with this hash in the workspace's part of the store."""


class StoreDamaged(ValueError):  # an answer: what lies there is something else
    """The bytes under a hash are not those that it names; what was read of them so far is not to be used."""


@dataclass(frozen=True, slots=True)
class LocalStore:
    """A region in a folder of this machine."""

    root: Path

    def put_stream(self, workspace_id: uuid.UUID, chunks: Iterable[bytes]) -> tuple[str, int]:
        """Keep the bytes; returns (SHA-256, how many). The same content again keeps one file. Raises StoreFull, and what `chunks` raises."""
        incoming = self._folder(workspace_id, "incoming")
        temporary = incoming / secrets.token_hex(16)
        try:
            sha256, count = _write(temporary, chunks)
            target = self._folder(workspace_id, "blobs", sha256[:2]) / sha256
            with held(target.parent):
                temporary.rename(target)  # over what may lie there: it is young again, and whole where it was damaged
            _sync_folder(target.parent)
        except BaseException as error:
            temporary.unlink(missing_ok=True)
            if isinstance(error, OSError) and error.errno in NO_ROOM:
                raise StoreFull(error.errno, "There is no room left in the store.") from error
            raise
        return sha256, count

    def takes_file(self, workspace_id: uuid.UUID, place: Path) -> bool:
        """Whether a file that lies at `place` can be moved in: whether it is on the same disk."""
        return place.stat().st_dev == self._folder(workspace_id, "incoming").stat().st_dev

    def put_file(self, workspace_id: uuid.UUID, place: Path, sha256: str) -> None:
        """Move a file in that is on the same disk, has this hash, and was forced to the disk; nobody writes it any more."""
        target = self._folder(workspace_id, "blobs", sha256[:2]) / sha256
        with held(target.parent):
            os.utime(place)
            place.rename(target)
        _sync_folder(target.parent)

    def open(self, workspace_id: uuid.UUID, sha256: str, *, start: int = 0, end: int | None = None) -> Iterator[bytes]:
        """The bytes from `start` up to `end` (not included), in pieces of at most 1 MiB. Raises StoreMissing and StoreAway before the first
        piece."""
        place = self.local_path(workspace_id, sha256)
        if place is None:
            raise StoreMissing(sha256)
        return _pieces(place, start, end)

    def local_path(self, workspace_id: uuid.UUID, sha256: str) -> Path | None:
        """Where the file lies on this machine, for staging; None where it is missing. Raises StoreAway where the region's folder is, as where its
        disk is not mounted: that is no file lost."""
        place = self._place(workspace_id, sha256)
        if place.is_file():
            return place
        if not self.root.is_dir():
            raise StoreAway("The folder of the region is not there.")
        return None

    def exists(self, workspace_id: uuid.UUID, sha256: str) -> bool:
        return self.size(workspace_id, sha256) is not None

    def size(self, workspace_id: uuid.UUID, sha256: str) -> int | None:
        """Bytes of the file as it lies there; None where it is missing."""
        place = self.local_path(workspace_id, sha256)
        return place.stat().st_size if place is not None else None

    def renew(self, workspace_id: uuid.UUID, sha256: str) -> bool:
        """Make a file young again, so that tidying up leaves it until a row names it; False where it is not there."""
        place = self._place(workspace_id, sha256)
        try:
            with held(place.parent):
                os.utime(place)
        except FileNotFoundError:
            return False
        return True

    def remove_old(self, workspace_id: uuid.UUID, sha256: str, *, older_than_seconds: float) -> bool:
        """Remove a file that has not been put or renewed for so long; False where it has been, or is gone. Nobody can make it young between the
        look and the removal. The caller knows that no row named it when the look began."""
        place = self._place(workspace_id, sha256)
        try:
            with held(place.parent):
                if place.stat().st_mtime >= time.time() - older_than_seconds:
                    return False
                place.unlink()
        except FileNotFoundError:
            return False
        return True

    def hashes(self, workspace_id: uuid.UUID, *, older_than_seconds: float) -> Iterator[str]:
        """Hashes of the files that have not been put for so long."""
        before = time.time() - older_than_seconds
        for path in sorted(self._base(workspace_id).glob("blobs/*/*")):
            if SHA256.fullmatch(path.name) and path.stat().st_mtime < before:
                yield path.name

    def tidy_incoming(self, workspace_id: uuid.UUID, *, older_than_seconds: float) -> int:
        """Remove what a killed process left in `incoming/`; returns how many files."""
        before, count = time.time() - older_than_seconds, 0
        for path in self._base(workspace_id).glob("incoming/*"):
            if path.stat().st_mtime < before:
                path.unlink(missing_ok=True)
                count += 1
        return count

    def _base(self, workspace_id: uuid.UUID) -> Path:
        if not isinstance(workspace_id, uuid.UUID):
            raise TypeError("The store knows workspaces by their key.")
        return self.root / workspace_id.hex

    def _place(self, workspace_id: uuid.UUID, sha256: str) -> Path:
        if not SHA256.fullmatch(sha256):
            raise StoreMissing("This is no SHA-256.")
        return self._base(workspace_id) / "blobs" / sha256[:2] / sha256

    def _folder(self, workspace_id: uuid.UUID, *parts: str) -> Path:
        """The folder, made with mode 0700 where it is missing, each parent made durable in its own parent."""
        folder = self._base(workspace_id).joinpath(*parts)
        missing = [place for place in (folder, *folder.parents) if not place.exists()]
        for place in reversed(missing):
            place.mkdir(mode=0o700, exist_ok=True)
            _sync_folder(place.parent)
        return folder


def _write(path: Path, chunks: Iterable[bytes]) -> tuple[str, int]:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb", buffering=0) as file, HashBeside() as digest:
        forced = 0
        for chunk in chunks:
            digest.update(chunk)
            rest = memoryview(chunk)
            while rest:  # an unbuffered file may take a part
                rest = rest[file.write(rest) :]
            if digest.count - forced >= STEP:
                begin_forcing(descriptor, forced, digest.count - forced)
                forced = digest.count
        os.fsync(descriptor)
        return digest.hexdigest(), digest.count


def begin_forcing(descriptor: int, start: int, count: int) -> None:
    """Let the disk begin with these bytes, without waiting for it: fsync at the end finds less left to do. What the disk does not have yet stays in
    memory (Linux: what is dirty is written out, and only what was clean is dropped). No promise: what is kept is so by fsync alone."""
    if hasattr(os, "posix_fadvise"):  # not on macOS
        os.posix_fadvise(descriptor, start, count, os.POSIX_FADV_DONTNEED)


def checked(pieces: Iterator[bytes], sha256: str) -> Iterator[bytes]:
    """The pieces, hashed on the way; the last one only once they are what `sha256` says. Raises StoreDamaged in its place."""
    digest, last = hashlib.sha256(), b""
    for piece in pieces:
        digest.update(piece)
        if last:
            yield last
        last = piece
    if digest.hexdigest() != sha256:
        raise StoreDamaged(f"The file {sha256} holds other bytes.")
    if last:
        yield last


def _pieces(path: Path, start: int, end: int | None) -> Iterator[bytes]:
    with path.open("rb", buffering=0) as file:
        file.seek(start)
        left = None if end is None else max(end - start, 0)
        while left is None or left > 0:
            piece = file.read(CHUNK if left is None else min(CHUNK, left))
            if not piece:
                return
            if left is not None:
                left -= len(piece)
            yield piece


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Alone, among all processes of this machine, in making files of the folder young and in removing them. FileNotFoundError without the folder."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
