"""A folder as a tar stream (POSIX ustar), piece by piece: nothing is written twice, and its length is known before the first byte."""

import tarfile
from collections.abc import Iterator
from pathlib import Path

BLOCK = tarfile.BLOCKSIZE
CHUNK = 1 << 20
END = b"\0" * (2 * BLOCK)


def tar_bytes(folder: Path) -> int:
    """How long the stream will be."""
    return sum(BLOCK + _padded(place.stat().st_size) for place in _files(folder)) + len(END)


def tar_stream(folder: Path, *, root: str, mtime: int) -> Iterator[bytes]:
    """The files below `folder` in the order of their names, under `root/`; owners are nobody, times `mtime`: the same folder, the same bytes."""
    for place in _files(folder):
        entry = tarfile.TarInfo(f"{root}/{place.relative_to(folder).as_posix()}")
        entry.size, entry.mtime, entry.mode = place.stat().st_size, mtime, 0o644
        yield entry.tobuf(tarfile.USTAR_FORMAT)
        with place.open("rb") as file:
            while piece := file.read(CHUNK):
                yield piece
        yield b"\0" * (_padded(entry.size) - entry.size)
    yield END


def _files(folder: Path) -> list[Path]:
    return sorted(place for place in folder.rglob("*") if place.is_file() and not place.is_symlink())


def _padded(size: int) -> int:
    return -(-size // BLOCK) * BLOCK
