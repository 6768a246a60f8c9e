"""Files on the machine of a pool, as people write them (`pool://<pool>/<path>`) and as a site operator allows them; and how one is read. Pure."""

import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import BinaryIO
from urllib.parse import quote, unquote

from runs.fetch import CHUNK, FetchFailed, Limits
from runs.outbound import MAX_ADDRESS, Forbidden
from runs.pools.base import PoolError, path_parts
from runs.pools.listed import root_of

SCHEME = "pool://"
Folders = Collection[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class PoolPath:
    """`pool`: its name; `path`: absolute, on its machine."""

    pool: str
    path: str

    @property
    def shown(self) -> str:
        return f"{SCHEME}{self.pool}{quote(self.path)}"

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


def is_pool_path(address: str) -> bool:
    return address.startswith(SCHEME)


def pool_path(address: str) -> PoolPath:
    """Forbidden for what names no file of a pool. A blank in a path is written as in any address, %20."""
    pool, slash, path = address.removeprefix(SCHEME).partition("/")
    try:
        if not pool or not slash or len(address) > MAX_ADDRESS:
            raise PoolError("it lacks its pool or its path")
        path_parts(plain := unquote(path, errors="strict"))
    except (PoolError, UnicodeDecodeError) as error:
        raise Forbidden(
            f"{address[:200]} names no file of a pool; write pool://<pool>/<absolute path>, without links, . and .. in it."
        ) from error
    return PoolPath(pool, f"/{plain}")


def read_folders(entries: Collection[str]) -> frozenset[tuple[str, str]]:
    """Pairs as an operator writes them, `engine:/folder`. ValueError names the one that is none."""
    pairs = set()
    for entry in entries:
        engine, colon, folder = entry.strip().partition(":")
        parts = folder.strip("/").split("/")
        if not colon or not engine or not folder.startswith("/") or any(part in {"", ".", ".."} for part in parts):
            raise ValueError(f"{entry!r} is no engine:/folder")
        pairs.add((engine, f"/{'/'.join(parts)}"))
    return frozenset(pairs)


def folders_of(engine: str, listed: Folders) -> tuple[str, ...]:
    return tuple(sorted(folder for name, folder in listed if name == engine))


def refuse_unlisted(path: PoolPath, engine: str, listed: Folders) -> None:
    """Forbidden where no folder is listed that the path is written below. What it leads to is looked at when it is read."""
    folders = folders_of(engine, listed)
    if root_of(path.path, folders) is None:
        allowed = f"From {engine}, files come from below {', '.join(folders)}" if folders else f"No folder of {engine} is listed"
        raise Forbidden(f"{path.shown[:200]} is not read for people. {allowed}; a site operator lists folders in LABSITE_IMPORT_FOLDERS.")


class PoolFetch:
    """One file, read as `Fetch` reads those that have an address. Where the line breaks it is read anew from its beginning, by another import."""

    etag = ""

    def __init__(self, open_file: Callable[[], BinaryIO], shown: str, *, limits: Limits) -> None:
        self._open = open_file
        self.shown = shown[:200]
        self._limits = limits

    def chunks(self) -> Iterator[bytes]:
        """The bytes, in pieces of at most 1 MiB. Raises FetchFailed, before the end too; whoever reads keeps nothing then."""
        count = 0
        try:
            with self._open() as file:
                while chunk := file.read(CHUNK):
                    count += len(chunk)
                    if count > self._limits.most_bytes:
                        raise FetchFailed(f"{self.shown} has more than {self._limits.most_bytes:,} bytes, the most that is taken here.")
                    if time.monotonic() > self._limits.deadline:
                        raise FetchFailed(f"Reading {self.shown} took too long; nothing was kept.")
                    yield chunk
        except PoolError as error:
            raise FetchFailed(f"{self.shown} cannot be read: {error.reason}.") from error
        except OSError as error:
            words = error.strerror or type(error).__name__
            raise FetchFailed(f"{self.shown} was not read to its end: {words}. Nothing was kept; ask for it again.") from error
