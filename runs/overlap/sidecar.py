"""What is kept of a version's records: a file of hashes and places, never of content. Pure.

Layout: a line with the name of the format, 32 bytes a record in their order, 84 bytes for each record with prose or measurements (its number, its
band keys), a JSON object that says what of these belongs to which file, and the length of that object in eight bytes. Numbers are little-endian.
"""

import json
import os
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import BinaryIO

import numpy as np

from runs.overlap.kinds import UNREAD
from runs.overlap.method import METHOD
from runs.overlap.reading import form_of, records_of, whole_file
from runs.overlap.texts import BANDS, Signatures
from runs.overlap.values import MIB, Record, Unreadable

FORMAT = b"labsite.records.v1\n"
RECORD = np.dtype([("exact", "<u8"), ("near", "<u8"), ("place", "<u8"), ("length", "<u8")])
SKETCH = np.dtype([("record", "<u4"), ("bands", "<u4", (BANDS,))])
AT_ONCE = 8192
MOST_RECORDS = 50_000_000  # 1.6 GB of hashes


@dataclass(frozen=True, slots=True)
class Source:
    """A file of a version: its path there, and where its bytes lie."""

    path: str
    place: Path


@dataclass(frozen=True, slots=True)
class Part:
    """What a file has of the records: `count` from number `first` on, counted from 0. `fault` says why it is not read by its records."""

    path: str
    kind: str
    first: int
    count: int
    fault: str = ""


@dataclass(frozen=True, slots=True)
class Contents:
    records: int
    sketches: int
    parts: tuple[Part, ...]

    def part_of(self, number: int) -> Part:
        return self.parts[bisect_right(self.parts, number, key=lambda part: part.first) - 1]


def write(out: Path, sources: Sequence[Source]) -> Contents:
    """Read every file by its records and keep their hashes in `out`. A file that cannot be read so is one record, and its part says why."""
    parts: list[Part] = []
    with out.open("xb") as kept, TemporaryFile(dir=out.parent) as prose:
        kept.write(FORMAT)
        writer = _Writer(kept, prose)
        for source in sources:
            first, kind = writer.records, UNREAD
            mark = writer.mark()
            try:
                form = form_of(source.path, source.place)
                kind = form.kind
                for record in records_of(source.path, source.place, form):
                    writer.add(record)
                parts.append(Part(source.path, kind, first, writer.records - first))
            except Unreadable as fault:
                writer.back_to(mark)
                writer.add(whole_file(source.place))
                parts.append(Part(source.path, kind, first, 1, str(fault)))
        writer.flush()
        prose.seek(0)
        while chunk := prose.read(MIB):
            kept.write(chunk)
        contents = Contents(writer.records, writer.sketches, tuple(parts))
        about = json.dumps({"method": METHOD, **asdict(contents)}).encode()
        kept.write(about + len(about).to_bytes(8, "little"))
    return contents


class Sidecar:
    """A kept file, read in pieces."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with path.open("rb") as file:
            if file.read(len(FORMAT)) != FORMAT:
                raise Unreadable("the kept hashes are of another format")
            file.seek(-8, os.SEEK_END)
            length = int.from_bytes(file.read(8), "little")
            file.seek(-8 - length, os.SEEK_END)
            about = json.loads(file.read(length))
        self.contents = Contents(about["records"], about["sketches"], tuple(Part(**part) for part in about["parts"]))

    def records(self, at_once: int = 65_536) -> Iterator[tuple[int, np.ndarray]]:
        """Number of the first, and records, in pieces."""
        yield from self._pieces(RECORD, len(FORMAT), self.contents.records, at_once)

    def sketches(self, at_once: int = 65_536) -> Iterator[tuple[int, np.ndarray]]:
        yield from self._pieces(SKETCH, len(FORMAT) + self.contents.records * RECORD.itemsize, self.contents.sketches, at_once)

    def record(self, number: int) -> np.void:
        found: np.void = np.fromfile(self._path, RECORD, 1, offset=len(FORMAT) + number * RECORD.itemsize)[0]
        return found

    def _pieces(self, dtype: np.dtype, start: int, count: int, at_once: int) -> Iterator[tuple[int, np.ndarray]]:
        for first in range(0, count, at_once):
            yield first, np.fromfile(self._path, dtype, min(at_once, count - first), offset=start + first * dtype.itemsize)


class _Writer:
    """Records and prose on their way into their files, some thousand at once."""

    def __init__(self, kept: BinaryIO, prose: BinaryIO) -> None:
        self._kept, self._texts = kept, prose
        self._signatures = Signatures()
        self._rows: list[tuple[int, int, int, int]] = []
        self._bands: list[tuple[int, np.ndarray]] = []
        self.records = self.sketches = 0

    def add(self, record: Record) -> None:
        if self.records >= MOST_RECORDS:
            raise Unreadable(f"there are more than {MOST_RECORDS:,} records")
        if record.prose or record.measured:
            self._bands.append((self.records, self._signatures.bands(record)))
            self.sketches += 1
        self._rows.append((record.exact, record.near, record.place, record.length))
        self.records += 1
        if len(self._rows) >= AT_ONCE:
            self.flush()

    def flush(self) -> None:
        self._kept.write(np.array(self._rows, RECORD).tobytes())
        self._texts.write(np.array(self._bands, SKETCH).tobytes())
        self._rows, self._bands = [], []

    def mark(self) -> tuple[int, int]:
        """Where the next file begins."""
        self.flush()
        return self.records, self.sketches

    def back_to(self, mark: tuple[int, int]) -> None:
        """Forget what was added since, for a file that turned out to be something else."""
        self.records, self.sketches = mark
        self._rows, self._bands = [], []
        for file, size in ((self._kept, len(FORMAT) + self.records * RECORD.itemsize), (self._texts, self.sketches * SKETCH.itemsize)):
            file.flush()
            file.seek(size)
            file.truncate()
