"""Files of a pool's machine that people bring: below folders that a site operator listed for it, and nowhere else.

Every folder on the way is opened from the one above it, without following links, and compared by what it is (device and inode), so that neither a
link, a bind mount nor a folder that is exchanged meanwhile leads into labsite's own files or into a pool's.
"""

from __future__ import annotations

import errno
import io
import os
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from runs.pools.base import PoolError, path_parts

if TYPE_CHECKING:
    from typing import TypeAlias

    from _typeshed import WriteableBuffer

Identity: TypeAlias = "tuple[int, int]"

CHUNK_BYTES = 1 << 18
CHANGED = "it changed while it was read"
OWN = "it lies in a folder of labsite, of a run, or around runs, which nobody brings files from"

# O_PATH: an account need not be allowed to list a folder that it passes through.
_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def root_of(path: str, below: Iterable[str]) -> str | None:
    """The longest of the listed folders that an absolute path is written below; None where there is none."""
    return max((one for one in below if path.startswith(f"{one.rstrip('/')}/")), key=len, default=None)


def open_listed(path: str, *, below: Sequence[str], never: Iterable[Path]) -> BinaryIO:
    """Open a regular file for reading. `below`: the listed folders, which may themselves be links; `never`: folders of labsite on this machine. The
    reading ends with OSError where the file is not what it was as it was opened. PoolError, a sentence, for anything that is not opened."""
    root = root_of(path, below)
    if root is None:
        raise PoolError("it is below no folder that a site operator listed")
    parts = path_parts(path[len(root.rstrip("/")) + 1 :])
    barred = {identity for identity in map(_identity_at, never) if identity is not None}
    try:
        return _open(os.path.realpath(root), parts, barred)
    except FileNotFoundError as error:
        raise PoolError("there is no such file") from error
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.ENOTDIR}:
            raise PoolError("a part of its path is a link, or no folder; links are not followed") from error
        if error.errno == errno.EACCES:
            raise PoolError("the account there may not read it") from error
        raise PoolError(f"it cannot be opened: {error.strerror}") from error


def _open(root: str, parts: Sequence[str], barred: set[Identity]) -> BinaryIO:
    for above in Path(root).parents:
        _refuse_own(os.open(above, _FOLDER), barred, close=True)
    here = os.open(root, _FOLDER)
    try:
        _refuse_own(here, barred)
        for part in parts[:-1]:
            below = os.open(part, _FOLDER, dir_fd=here)
            os.close(here)
            here = below
            _refuse_own(here, barred)
        # Looked at before it is opened: opening a device may do something.
        if not stat.S_ISREG(os.stat(parts[-1], dir_fd=here, follow_symlinks=False).st_mode):
            raise PoolError("it is not a regular file; links are not followed")
        number = os.open(parts[-1], _FILE, dir_fd=here)
    finally:
        os.close(here)
    return io.BufferedReader(StillFile(number), CHUNK_BYTES)


def _refuse_own(folder: int, barred: set[Identity], *, close: bool = False) -> None:
    try:
        if _identity(os.fstat(folder)) in barred or _holds_runs(folder):
            raise PoolError(OWN)
    finally:
        if close:
            os.close(folder)


def _holds_runs(folder: int) -> bool:
    """Whether it is the folder of a pool, of this workspace or another: runs, and what a launcher keeps beside them."""
    return _is_folder("runs", folder) and any(_is_folder(name, folder) for name in ("uids", "launcher", "python"))


def _is_folder(name: str, folder: int) -> bool:
    try:
        return stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except OSError:
        return False


def _identity_at(path: Path) -> Identity | None:
    try:
        return _identity(os.stat(path))
    except OSError:
        return None


def _identity(found: os.stat_result) -> Identity:
    return found.st_dev, found.st_ino


def _stamp(found: os.stat_result) -> tuple[int, ...]:
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns


class StillFile(io.RawIOBase):
    """A regular file whose end is reached only if it has stayed as it was."""

    def __init__(self, number: int) -> None:
        self._number = number
        found = os.fstat(number)
        self._first, self._left = _stamp(found), found.st_size
        if not stat.S_ISREG(found.st_mode):
            os.close(number)
            self._number = -1
            raise PoolError("it is not a regular file")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """OSError where the file has changed, at the latest at its end."""
        count = os.readv(self._number, [buffer])
        self._left -= count
        if self._left < 0 or (not count and (self._left or _stamp(os.fstat(self._number)) != self._first)):
            raise OSError(errno.EIO, CHANGED)
        return count

    def close(self) -> None:
        number, self._number = self._number, -1
        if number >= 0:
            os.close(number)
        super().close()
