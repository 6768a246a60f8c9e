"""A file by its records, by the ending of its name. What cannot be read so is one record: its bytes (kinds.py says what that means). Pure."""

import zlib
from collections.abc import Callable, Iterator
from functools import partial
from hashlib import blake2b
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

from runs.overlap.arrays import archive_records, array_records
from runs.overlap.documents import document_records
from runs.overlap.games import game_records
from runs.overlap.kinds import HEAD, media_kind
from runs.overlap.lines import json_records, table_records, text_records
from runs.overlap.values import MIB, Record, Unreadable

Reader = Callable[[BinaryIO], Iterator[Record]]
READERS: dict[str, tuple[str, Reader]] = {
    "csv": ("table", partial(table_records, delimiter=",")),
    "tsv": ("table", partial(table_records, delimiter="\t")),
    "jsonl": ("json", json_records),
    "ndjson": ("json", json_records),
    "json": ("document", document_records),
    "txt": ("text", text_records),
    "text": ("text", text_records),
    "md": ("text", text_records),
    "sgf": ("games", game_records),
    "npz": ("arrays", archive_records),
    "npy": ("arrays", array_records),
}


def kind_of(path: str, place: Path) -> str:
    """table, json, document, text, games, arrays; or what is compared as a whole: picture, sound, film, or UNREAD. `place`: where its bytes lie."""
    if _ending(path) in READERS:
        return READERS[_ending(path)][0]
    with place.open("rb") as file:
        return media_kind(_ending(path), file.read(HEAD))


def records_of(path: str, place: Path) -> Iterator[Record]:
    """Records of the file at `place` that is called `path`. Raises Unreadable, perhaps after some records."""
    if _ending(path) not in READERS:
        yield whole_file(place)
        return
    with place.open("rb") as file:
        try:
            yield from READERS[_ending(path)][1](file)
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


def record_of(path: str, content: bytes, *, first_row: bytes) -> Record:
    """One record by its bytes; `first_row` are those of a table's first row, which may name its columns."""
    kind, reader = READERS[_ending(path)]
    return list(reader(BytesIO(first_row + content if kind == "table" else content)))[-1]


def _ending(path: str) -> str:
    return path.rpartition(".")[2].lower()
