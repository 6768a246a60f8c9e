"""A file by its records, by the ending of its name. What cannot be read so is one record: its bytes (kinds.py says what that means). Pure."""

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

from runs.overlap.documents import document_records
from runs.overlap.forms import DELIMITERS, LOOKED_AT, delimiter_of, ending_of, has_names, is_json_lines, plain, rows_of, turned
from runs.overlap.games import game_records
from runs.overlap.kinds import HEAD, MEDIA, UNREAD, media_kind
from runs.overlap.lines import is_one_document, json_records, table_records, text_records
from runs.overlap.values import MIB, Record, Unreadable

KINDS = {
    **dict.fromkeys(("csv", "tsv", "tab"), "table"),
    **dict.fromkeys(("jsonl", "ndjson"), "json"),
    "json": "document",
    **dict.fromkeys(("txt", "text", "md"), "text"),
    "sgf": "games",
    "npz": "arrays",
    "npy": "arrays",
}
TEXTS = frozenset({"table", "json", "document", "text"})
READERS: dict[str, Callable[[BinaryIO], Iterator[Record]]] = {
    "json": json_records,
    "document": document_records,
    "text": text_records,
    "games": game_records,
}


@dataclass(frozen=True, slots=True)
class Form:
    """How a file is read: its kind, and of a table what stands between cells. A table without a row of names is of the kind rows."""

    kind: str
    delimiter: str = ""

    def records(self, path: str, file: BinaryIO) -> Iterator[Record]:
        if self.kind in ("table", "rows"):
            return table_records(file, delimiter=self.delimiter, has_names=self.kind == "table")
        return _arrays(path, file) if self.kind == "arrays" else READERS[self.kind](file)


def _arrays(path: str, file: BinaryIO) -> Iterator[Record]:
    from runs.overlap.arrays import archive_records, array_records  # noqa: PLC0415  # NumPy: whoever serves pages reads no arrays

    return archive_records(file) if ending_of(path) == "npz" else array_records(file)


def form_of(path: str, place: Path) -> Form:
    """As `form_in`, of the file at `place`."""
    with place.open("rb") as file:
        return form_in(path, file)


def form_in(path: str, file: BinaryIO) -> Form:
    """table, rows, json, document, text, games, arrays; or what is compared as a whole: picture, sound, film, or UNREAD. `file`: its first bytes at
    least. Raises Unreadable for what cannot be unpacked."""
    ending = ending_of(path)
    kind = KINDS.get(ending, UNREAD)
    if kind == UNREAD:
        return Form(media_kind(ending, file.read(HEAD)))
    if ending not in DELIMITERS:
        return Form(kind)
    with turned(path, file, is_text=True, most=LOOKED_AT) as text:
        head = text.read(LOOKED_AT)
    if kind == "text" and is_json_lines(head):
        return Form("json")
    delimiter = delimiter_of(ending, head)
    if not delimiter:
        return Form("text")
    return Form("table" if has_names(rows_of(head, delimiter)) else "rows", delimiter)


def records_of(path: str, place: Path, form: Form) -> Iterator[Record]:
    """Records of the file at `place` that is called `path`. Raises Unreadable, perhaps after some records."""
    if form.kind in {UNREAD, *MEDIA}:
        yield whole_file(place)
        return
    with plain(path, place, is_text=KINDS[ending_of(path)] in TEXTS) as file:
        if form.kind == "json" and is_one_document(file):
            raise Unreadable("it holds its records in one line; with a line for each they can be read")
        file.seek(0)
        try:
            yield from form.records(path, file)
        except (ValueError, ArithmeticError, LookupError, TypeError, zlib.error) as fault:
            if isinstance(fault, Unreadable):
                raise
            raise Unreadable(f"it is not what its name says ({type(fault).__name__})") from fault


def whole_file(place: Path) -> Record:
    whole, length = blake2b(digest_size=8), 0
    with place.open("rb") as file:
        while chunk := file.read(MIB):
            whole.update(chunk)
            length += len(chunk)
    digest = int.from_bytes(whole.digest(), "little")
    return Record(digest, digest, 0, length)


def record_of(path: str, content: bytes, form: Form, *, first_row: bytes) -> Record:
    """One record by its bytes; `first_row` are those of a table's first row, which may name its columns."""
    return list(form.records(path, BytesIO(first_row + content)))[-1]
