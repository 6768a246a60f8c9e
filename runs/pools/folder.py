"""Read and remove run folders whose content a hostile run has written: no link is followed, nothing but regular files is opened."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from runs.pools.base import MAX_DEPTH, PASSING, NotPlain, OutputFile, OutputList, PoolError, in_short, is_component

MAX_OUTPUTS = 10_000

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# O_NONBLOCK: opening a FIFO without a writer must not wait.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@contextmanager
def opened(folder: Path, *parts: str) -> Iterator[int]:
    """A descriptor of a folder below the run folder, reached one component at a time without following links."""
    number = os.open(folder, _FOLDER)
    try:
        for part in parts:
            below = os.open(part, _FOLDER, dir_fd=number)
            os.close(number)
            number = below
        yield number
    finally:
        os.close(number)


def open_regular(folder: int, name: str, owners: frozenset[int]) -> int:
    """Open a regular file that belongs to one of `owners`; NotPlain for links, specials and other people's files (hard links)."""
    try:
        number = os.open(name, _FILE, dir_fd=folder)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise _refusal(f"{name} is not a regular file of this run", error) from error
    found = os.fstat(number)
    if not stat.S_ISREG(found.st_mode) or found.st_uid not in owners:
        os.close(number)
        raise NotPlain(f"{name} is not a regular file of this run")
    return number


def _refusal(words: str, error: OSError) -> PoolError:
    """A file system that has gone, or a process without descriptors, says nothing of the file."""
    return in_short(f"{words} just now", error) if error.errno in PASSING else NotPlain(words)


def read_piece(folder: Path, parts: tuple[str, ...], owners: frozenset[int], *, offset: int, limit: int) -> bytes:
    """At most `limit` bytes from `offset`; empty where the file is not there yet. NotPlain where something else is in its place."""
    if offset < 0 or limit < 0:
        raise PoolError("offset and limit are not negative")
    try:
        with opened(folder, *parts[:-1]) as here:
            number = open_regular(here, parts[-1], owners)
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise _refusal(f"{parts[-1]} is not in plain folders of this run", error) from error
    try:
        return os.pread(number, limit, offset)
    except OverflowError as error:
        raise PoolError("offset or limit is too large") from error
    finally:
        os.close(number)


def list_outputs(folder: Path, owners: frozenset[int]) -> OutputList:
    """Regular files below `outputs/`, sorted by path; everything else is counted, and what may be work is named. PoolError where the file system
    says nothing of them just now: what was not seen is not left."""
    found = OutputList()
    todo: list[tuple[str, ...]] = [()]
    while todo:
        parts = todo.pop()
        try:
            with opened(folder, "outputs", *parts) as here, os.scandir(here) as entries:
                for entry in entries:
                    try:
                        _sort_in(entry, here, parts, owners, found, todo)
                    except FileNotFoundError:  # gone since it was listed; the others are not
                        found.skipped += 1
        except FileNotFoundError:
            found.skipped += 1
        except OSError as error:
            if error.errno in PASSING:
                raise in_short("the outputs cannot be listed just now", error) from error
            found.leave("closed", "/".join(parts) or "outputs/")
    found.sort(key=lambda one: one.path)
    return found


def _sort_in(
    entry: os.DirEntry[str], here: int, parts: tuple[str, ...], owners: frozenset[int], found: OutputList, todo: list[tuple[str, ...]]
) -> None:
    path = (*parts, entry.name)
    one = entry.stat(follow_symlinks=False)
    if stat.S_ISLNK(one.st_mode) and _stays_inside(os.readlink(entry.name, dir_fd=here), len(parts)):
        found.skipped += 1
    elif stat.S_ISLNK(one.st_mode):
        found.leave("links", "/".join(path))
    elif not stat.S_ISREG(one.st_mode) and not stat.S_ISDIR(one.st_mode):
        found.skipped += 1
    elif not is_component(entry.name) or len(path) > MAX_DEPTH:
        found.leave("names", "/".join(path))
    elif len(found) >= MAX_OUTPUTS:
        found.leave("more", "/".join(path))
    elif stat.S_ISDIR(one.st_mode):
        todo.append(path)
    elif one.st_uid not in owners:
        found.leave("closed", "/".join(path))
    else:
        found.append(OutputFile(path="/".join(path), bytes=one.st_size))


def _stays_inside(target: str, depth: int) -> bool:
    """Does a link that lies `depth` folders below `outputs/` name something below it? By its words alone: it is not followed."""
    if target.startswith("/"):
        return False
    for part in target.split("/"):
        depth += {"..": -1, ".": 0, "": 0}.get(part, 1)
        if depth < 0:
            return False
    return True


def open_output(folder: Path, parts: tuple[str, ...], owners: frozenset[int]) -> BinaryIO:
    """Open a regular file below `outputs/` for reading; FileNotFoundError where it is gone, PoolError where a component is a link."""
    try:
        with opened(folder, "outputs", *parts[:-1]) as here:
            number = open_regular(here, parts[-1], owners)
    except FileNotFoundError as error:
        raise PoolError("there is no such output") from error
    except OSError as error:
        raise PoolError("the path of this output is not made of plain folders") from error
    os.set_blocking(number, True)
    return open(number, "rb")


def remove_tree(folder: Path) -> None:
    """Remove a folder of any depth. Folders are moved up before they are emptied, so that neither stack nor path length matters."""
    moved = 0
    todo = [folder.name]
    with opened(folder.parent) as parent:
        while todo:
            name = todo[-1]
            os.chmod(name, 0o700, dir_fd=parent)  # a run may have closed its own folders; they are ours to remove
            here = os.open(name, _FOLDER, dir_fd=parent)
            try:
                todo.pop()
                with os.scandir(here) as scan:
                    entries = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in scan]
                for entry, is_folder in entries:
                    if is_folder:
                        moved += 1
                        target = f"{folder.name}.{moved}"
                        os.chmod(entry, 0o700, dir_fd=here)
                        os.rename(entry, target, src_dir_fd=here, dst_dir_fd=parent)
                        todo.append(target)
                    else:
                        os.unlink(entry, dir_fd=here)
            finally:
                os.close(here)
            os.rmdir(name, dir_fd=parent)
