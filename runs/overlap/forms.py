"""In which form a file holds its records: packed, in UTF-16, with which delimiter, with a row of names or without. Read off its first bytes. Pure."""

import csv
import gzip
import json
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from io import BytesIO, TextIOWrapper
from pathlib import Path
from tempfile import TemporaryFile
from typing import BinaryIO

from runs.overlap.normal import is_number
from runs.overlap.values import MIB, Unreadable

LOOKED_AT = 65_536  # bytes of a file, to say what it is
ROWS = 50  # of a table
MOST_PLAIN = 2048 * MIB
DELIMITERS = {"csv": ",", "tsv": "\t", "tab": "\t", "txt": "", "text": "", "md": ""}
_WIDE = (b"\xff\xfe", b"\xfe\xff")
_LONGEST_NAME = 100  # characters of a column's


def ending_of(path: str) -> str:
    """Of what is packed, the ending before that of the packing."""
    name = path.lower().removesuffix(".gz")
    return name.rpartition(".")[2]


def is_turned(path: str, file: BinaryIO) -> bool:
    """Are its records at other places than their bytes in the file?"""
    return path.lower().endswith(".gz") or _is_wide(file)


@contextmanager
def plain(path: str, place: Path, *, is_text: bool) -> Iterator[BinaryIO]:
    """As `turned`, of the file at `place`."""
    with place.open("rb") as file, turned(path, file, is_text=is_text) as found:
        yield found


@contextmanager
def turned(path: str, found: BinaryIO, *, is_text: bool, most: int | None = None) -> Iterator[BinaryIO]:
    """The file unpacked, text in UTF-8; with `most`, of what has to be turned little more than so many bytes. Raises Unreadable for what is no
    gzip, what ends early, and what is longer than 2 GiB."""
    with ExitStack() as opened:
        if path.lower().endswith(".gz"):
            unpacked = opened.enter_context(TemporaryFile())
            try:
                _copied(gzip.GzipFile(fileobj=found), unpacked, most)
            except (gzip.BadGzipFile, EOFError, zlib.error) as fault:
                raise Unreadable(f"it is no gzip file: {fault}"[:300]) from fault
            found = unpacked
        found.seek(0)
        if is_text and _is_wide(found):
            found.seek(0)
            narrow = opened.enter_context(TemporaryFile())
            text = TextIOWrapper(found, "utf-16", "backslashreplace", newline="")
            while (most is None or narrow.tell() < most) and (chunk := text.read(min(MIB, most or MIB))):
                narrow.write(chunk.encode("utf-8", "backslashreplace"))
            text.detach()
            found = narrow
        found.seek(0)
        yield found


def _is_wide(file: BinaryIO) -> bool:
    """UTF-16 with its mark; in it, a line's end and a digit have a zero byte."""
    head = file.read(LOOKED_AT)
    return head[:2] in _WIDE and b"\x00" in head


def _copied(source: gzip.GzipFile, target: BinaryIO, most: int | None) -> None:
    while (most is None or target.tell() < most) and (chunk := source.read(min(MIB, most or MIB))):
        if target.tell() + len(chunk) > MOST_PLAIN:
            raise Unreadable(f"unpacked it has more than {MOST_PLAIN // MIB} MiB")
        target.write(chunk)


def delimiter_of(ending: str, head: bytes) -> str:
    """Of a table. What the ending says, unless every row at the head has as many cells with another and there are more of them; empty for text."""
    named = DELIMITERS[ending]
    counts = {delimiter: _cells(head, delimiter) for delimiter in (",", ";", "\t", "|")}
    if named and counts[named] > 1:
        return named
    best = max(counts, key=lambda delimiter: counts[delimiter])
    return best if counts[best] > 1 else named


def _cells(head: bytes, delimiter: str) -> int:
    """Cells of each row at the head, of two at least; 0 where they differ, or where it reads like prose."""
    rows = rows_of(head, delimiter)
    first = rows[0] if rows else []
    if len(rows) < 2 or any(len(row) != len(first) for row in rows):
        return 0
    is_prose = any(len(name) > _LONGEST_NAME for name in first) or all(name[:1] == " " for row in rows for name in row[1:])
    return 0 if is_prose or len(set(first)) < len(first) else len(first)


def has_names(rows: list[list[str]]) -> bool:
    """Does the first row name the columns? Not with a number or a text in it, nor where one of its values comes again in the same column or most
    rows are wider: it is a note above the table, then."""
    if not rows or any(is_number(cell) or len(cell) > _LONGEST_NAME for cell in rows[0]):
        return False
    others = [row for row in rows[1:] if row != rows[0]]
    if 2 * sum(len(row) > len(rows[0]) for row in others) > len(others):
        return False
    return not any(cell.strip() and cell == row[at] for row in others for at, cell in enumerate(rows[0]) if at < len(row))


def rows_of(head: bytes, delimiter: str) -> list[list[str]]:
    """The first rows that are whole, without empty ones."""
    text = head.decode("utf-8-sig", "backslashreplace")
    lines = text.splitlines(keepends=True)
    if len(head) >= LOOKED_AT and len(lines) > 1:
        lines.pop()
    rows: list[list[str]] = []
    try:
        for row in csv.reader(lines, delimiter=delimiter):
            if any(cell.strip() for cell in row):
                rows.append(row)
            if len(rows) >= ROWS:
                break
    except csv.Error:
        pass
    return rows


def is_json_lines(head: bytes) -> bool:
    """Is the first line with anything in it a JSON object?"""
    line = next((line for line in BytesIO(head) if line.strip()), b"").strip()
    try:
        return line.startswith(b"{") and isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False
