"""The folder of an export while it is written: files with their hashes, then the manifest, then its name. Pure: values in, files out.

Everything is written to `<folder>.part`, forced to the disk and renamed, so that a folder under its own name is whole. Modes are 0600, 0700. A folder
that is there already is somebody's: FileExistsError, and nothing is touched.
"""

import errno
import hashlib
import json
import math
import os
import shutil
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

BUFFER = 1 << 20


@dataclass(frozen=True, slots=True)
class Entry:
    """One file: `rows` counts lines of JSON, None where it holds none; `columns` are [name, type] of each."""

    path: str
    bytes: int
    sha256: str
    rows: int | None = None
    table: str = ""
    columns: list[list[str]] = field(default_factory=list)


class ExportFolder:
    """Writes what it is given, in that order. As a context it removes its `.part`, if that has not got its name."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.part = part_of(folder)
        self.entries: list[Entry] = []
        self.blob_bytes = 0
        make_folder(folder.parent)
        self.part.mkdir(mode=0o700)

    def __enter__(self) -> "ExportFolder":
        return self

    def __exit__(self, *fault: object) -> None:
        remove(self.part)

    def rows(self, path: str, lines: Iterable[Mapping[str, Any]], *, table: str = "", columns: list[list[str]] | None = None) -> Entry:
        """A file of JSON lines, one a row."""
        count = 0

        def spelled() -> Iterable[bytes]:
            nonlocal count
            for line in lines:
                count += 1
                yield spell(line)

        size, sha256 = self._write(path, spelled())
        return self._add(Entry(path, size, sha256, count, table, columns or []))

    def content(self, path: str, content: bytes) -> Entry:
        return self.pieces(path, [content])

    def pieces(self, path: str, pieces: Iterable[bytes]) -> Entry:
        """A file of whatever comes, piece by piece."""
        size, sha256 = self._write(path, pieces)
        return self._add(Entry(path, size, sha256))

    def blob(self, sha256: str, chunks: Iterable[bytes]) -> None:
        """A stored file under its hash; ValueError where the bytes are not those."""
        size, found = self._write(f"blobs/{sha256[:2]}/{sha256}", chunks)
        if found != sha256:
            raise ValueError(f"the store holds other bytes under {sha256}")
        self.blob_bytes += size

    def manifest(self, stated: Mapping[str, Any]) -> bytes:
        """What is written as MANIFEST.json: what is stated, and every file so far."""
        files = [{name: value for name, value in asdict(entry).items() if value not in ("", [], None)} for entry in self.entries]
        return json.dumps({**stated, "files": files}, indent=1, ensure_ascii=False).encode() + b"\n"

    def finish(self, manifest: bytes, signature: bytes) -> int:
        """Write the last two, force all to the disk, give the folder its name; returns all bytes."""
        total = sum(entry.bytes for entry in self.entries) + self.blob_bytes
        for name, content in (("MANIFEST.json", manifest), ("MANIFEST.sig", signature)):
            total += self._write(name, [content])[0]
        for base, _, _ in os.walk(self.part, topdown=False):
            _sync(Path(base))
        if self.folder.exists():
            raise FileExistsError(errno.EEXIST, "there is such a folder already", str(self.folder))
        self.part.rename(self.folder)
        _sync(self.folder.parent)
        return total

    def _add(self, entry: Entry) -> Entry:
        self.entries.append(entry)
        return entry

    def _write(self, path: str, pieces: Iterable[bytes]) -> tuple[int, str]:
        place = self.part.joinpath(*path.split("/"))
        make_folder(place.parent)
        digest, size = hashlib.sha256(), 0
        descriptor = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb", buffering=BUFFER) as file:
            for piece in pieces:
                file.write(piece)
                digest.update(piece)
                size += len(piece)
            file.flush()
            os.fsync(file.fileno())
        return size, digest.hexdigest()


def part_of(folder: Path) -> Path:
    """Where it lies until it is whole."""
    return folder.with_name(f"{folder.name}.part")


def remove(folder: Path) -> None:
    """A folder of an export, whole or not; nothing where there is none."""
    if folder.is_dir() and not folder.is_symlink():
        shutil.rmtree(folder)


def spell(line: Mapping[str, Any]) -> bytes:
    """One row as a line: the same row gives the same bytes."""
    return (
        json.dumps(
            {name: plain(value) for name, value in line.items()}, separators=(",", ":"), ensure_ascii=False, allow_nan=False
        ).encode()
        + b"\n"
    )


def plain(value: Any) -> Any:
    """Keys as hex, times in UTC with microseconds, numbers that JSON has no word for as theirs; JSON columns as they are, keys in one order."""
    match value:
        case bool() | None | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        case uuid.UUID():
            return value.hex
        case datetime():
            return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        case date():
            return value.isoformat()
        case dict():
            return {str(name): plain(value[name]) for name in sorted(value)}
        case list() | tuple():
            return [plain(item) for item in value]
    raise TypeError(f"An export has no spelling for {type(value).__name__}.")


def make_folder(folder: Path) -> None:
    """The folder and what is missing above it, for nobody else."""
    for place in reversed([place for place in (folder, *folder.parents) if not place.exists()]):
        place.mkdir(mode=0o700, exist_ok=True)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
