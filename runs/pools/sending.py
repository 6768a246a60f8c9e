"""Files of the store on their way to another host: their sizes first, then their content, one after the other."""

import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from runs.pools.base import PoolError, StagedFile, in_short

PIECE_BYTES = 1 << 18


@dataclass(frozen=True)
class Sized:
    """A file and how many bytes of it are announced."""

    file: StagedFile
    bytes: int


def sized(files: Sequence[StagedFile]) -> list[Sized]:
    """PoolError where one is not there, or is not a regular file."""
    found = []
    for file in files:
        try:
            one = os.stat(file.source)
        except OSError as error:
            raise in_short(f"{file.path} could not be read from the store", error) from error
        if not stat.S_ISREG(one.st_mode):
            raise PoolError(f"{file.path} is not a regular file in the store")
        found.append(Sized(file, one.st_size))
    return found


def pieces_of(files: Sequence[Sized]) -> Iterator[bytes]:
    """Exactly the announced bytes of each, never an empty piece; PoolError where a file has become shorter or cannot be read."""
    for one in files:
        left = one.bytes
        try:
            with open(one.file.source, "rb", buffering=0) as source:
                while left > 0:
                    piece = source.read(min(left, PIECE_BYTES))
                    if not piece:
                        raise PoolError(f"{one.file.path} became shorter while it was sent")
                    left -= len(piece)
                    yield piece
        except OSError as error:
            raise in_short(f"{one.file.path} could not be read from the store", error) from error
