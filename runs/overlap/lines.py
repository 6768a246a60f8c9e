"""Files that are read line by line: tables, JSON Lines, text. Memory is bounded by the longest record. Pure."""

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice
from typing import BinaryIO

from runs.overlap.documents import holds_records
from runs.overlap.normal import object_record, row_record, text_record
from runs.overlap.values import LONGEST_PARSED, LONGEST_RECORD, MIB, Record, Unreadable

csv.field_size_limit(LONGEST_RECORD)


@dataclass(frozen=True, slots=True)
class Line:
    """`content` is without its line end; None where it is longer than LONGEST_RECORD, and `digest` stands for it."""

    place: int
    length: int
    content: bytes | None
    digest: int = 0


def lines_of(file: BinaryIO) -> Iterator[Line]:
    """Lines with anything in them."""
    place = 0
    while chunk := file.readline(LONGEST_RECORD + 1):
        if len(chunk) <= LONGEST_RECORD or chunk.endswith(b"\n"):
            if content := chunk.strip():
                yield Line(place, len(chunk), content)
            place += len(chunk)
            continue
        whole, length = blake2b(chunk, digest_size=8), len(chunk)
        while not chunk.endswith(b"\n") and (chunk := file.readline(MIB)):
            whole.update(chunk)
            length += len(chunk)
        yield Line(place, length, None, int.from_bytes(whole.digest(), "little"))
        place += length


def text_records(file: BinaryIO) -> Iterator[Record]:
    """Each line is a record."""
    for line in lines_of(file):
        yield _too_long(line) if line.content is None else _text(line, line.content)


def json_records(file: BinaryIO) -> Iterator[Record]:
    """Each line is a record; one that is no JSON, or nested too deep, is compared as text."""
    for line in lines_of(file):
        if line.content is None:
            yield _too_long(line)
            continue
        try:
            found = json.loads(line.content) if line.length <= LONGEST_PARSED else None
            yield _text(line, line.content) if found is None else object_record(found, place=line.place, length=line.length)
        except (ValueError, RecursionError):
            yield _text(line, line.content)


def is_one_document(file: BinaryIO) -> bool:
    """Is the only line of a file of JSON Lines an object with a list of objects, which are its records?"""
    first = list(islice(lines_of(file), 2))
    if len(first) != 1 or first[0].content is None:
        return False
    try:
        return holds_records(json.loads(first[0].content))
    except (ValueError, RecursionError):
        return False


def table_records(file: BinaryIO, *, delimiter: str, has_names: bool) -> Iterator[Record]:
    """Rows of CSV or TSV (RFC 4180), whatever the order of their columns. Where the first row does not name them, numbers from 0 do.

    Raises Unreadable where quotes or lines are longer than LONGEST_RECORD.
    """
    source = _Lines(file)
    rows = csv.reader(source, delimiter=delimiter)
    names: list[str] | None = None
    order: list[int] = []
    start = 0
    try:
        for row in rows:
            place, start = start, source.place
            if not any(cell.strip() for cell in row):
                continue
            if names is None:
                names = names_of(row, has_names=has_names)
                order = sorted(range(len(names)), key=names.__getitem__)
                if has_names:
                    continue
            if len(row) == len(names):
                yield row_record([names[at] for at in order], [row[at] for at in order], place=place, length=start - place)
            else:
                yield row_record(of_width(names, len(row)), row, place=place, length=start - place)
    except csv.Error as fault:
        raise Unreadable(f"line {rows.line_num:,}: {fault}") from fault


class _Lines:
    """Lines as text for the reader of tables, which asks for no more than its next row needs; `place` is where the one after begins."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.place = 0
        self._count = 0

    def __iter__(self) -> "_Lines":
        return self

    def __next__(self) -> str:
        line = self._file.readline(LONGEST_RECORD + 1)
        if not line:
            raise StopIteration
        self._count += 1
        if len(line) > LONGEST_RECORD and not line.endswith(b"\n"):
            raise Unreadable(f"line {self._count:,} is longer than {LONGEST_RECORD // MIB} MiB")
        text = line.removeprefix(b"\xef\xbb\xbf") if self.place == 0 else line
        self.place += len(line)
        return text.decode("utf-8", "backslashreplace")


def names_of(first: list[str], *, has_names: bool) -> list[str]:
    """Names of a table's columns by its first row, no two the same."""
    return _distinct(first if has_names else [f"{number}" for number in range(len(first))])


def of_width(names: list[str], width: int) -> list[str]:
    """Names for a row of another width: what stands under no name has its place as one."""
    return [*names[:width], *(f"+{number}" for number in range(width - len(names)))]


def _distinct(names: list[str]) -> list[str]:
    seen: dict[str, int] = {}
    found = []
    for name in (name.strip() for name in names):
        seen[name] = seen.get(name, 0) + 1
        found.append(name if seen[name] == 1 else f"{name} {seen[name]}")
    return found


def _text(line: Line, content: bytes) -> Record:
    return text_record(content.decode("utf-8", "backslashreplace"), place=line.place, length=line.length)


def _too_long(line: Line) -> Record:
    return Record(line.digest, line.digest, line.place, line.length)
