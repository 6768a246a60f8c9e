"""Records of a version's files as text: found again as they were read (runs/overlap), in bounded time and memory, nothing of them executed.

Where a file lies unpacked and in UTF-8, a record's bytes are read at their place. Of one that is packed, in UTF-16, or a JSON document, no more than
its beginning is turned, once for a page, and no page turns more than its share: a packed file may stand for a thousand times its size.
"""

import csv
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from io import BytesIO
from itertools import zip_longest
from typing import Any

from runs.overlap.documents import objects_of
from runs.overlap.forms import LOOKED_AT, ending_of, is_turned, rows_of, turned
from runs.overlap.lines import names_of, of_width
from runs.overlap.normal import fields_of
from runs.overlap.reading import KINDS, TEXTS, Form, form_in
from runs.overlap.values import MIB
from workspaces import scope, store
from workspaces.models import DatasetFile, DatasetVersion
from workspaces.text import encodable

MOST_BYTES = 2_000  # of a record, to show
MOST_TURNED = 8 * MIB  # of a file
MOST_DOCUMENT = 2 * MIB  # of JSON that is read at once, which then takes up to 25 times that
MOST_ON_PAGE = 32 * MIB
DOCUMENT_WEIGHS = 4  # so much longer is JSON read than something is unpacked
LONGEST = 65_536  # of a record whose end is looked for

NO_TEXT = "Not text, so it is not shown."
NO_FILE = "Its file is not in the store, so it is not shown."
UNREADABLE = "Its file could not be read by its records, so it is not shown."
TOO_FAR = f"Not shown: it stands after the first {MOST_TURNED // MIB} MiB of what the file holds unpacked."
TOO_LARGE = f"Not shown: only JSON documents of up to {MOST_DOCUMENT // MIB} MiB are opened for this page."
NO_ROOM = f"Not shown: a page unpacks and opens little more than {MOST_ON_PAGE // MIB} MiB of files, and this one has."


@dataclass(frozen=True, slots=True)
class RecordText:
    """The beginning of a record, and its values by their names where it has names; or why it is not shown."""

    text: str | None
    is_cut: bool = False
    fields: dict[str, str] | None = None
    missing: str = ""


@dataclass(slots=True)
class Room:
    """Bytes that may still be turned for a page; whoever begins within them comes to the end."""

    left: int = field(default_factory=lambda: MOST_ON_PAGE)


class Hidden(Exception):  # an answer: its message says why nothing is shown
    """A file of which no record can be shown."""


@dataclass(slots=True)
class _Opened:
    """`content`: of what was turned, its beginning; None where records lie in the file as they are. `head`: in UTF-8, the first LOOKED_AT bytes.
    `objects`: of a document, those that are asked for, by their numbers."""

    form: Form
    head: bytes
    content: bytes | None = None
    is_whole: bool = True
    objects: dict[int, RecordText] = field(default_factory=dict)


class RecordTexts:
    """Of one version the records at `places`, as pairs of a check name them."""

    def __init__(self, version: DatasetVersion, places: Iterable[Mapping[str, Any]], room: Room) -> None:
        self._wanted: dict[str, set[int]] = defaultdict(set)
        for where in places:
            self._wanted[where["path"]].add(where["place"])
        rows = DatasetFile.objects.filter(version=version, path__in=self._wanted).select_related("blob")
        self._files = {file.path: file for file in rows}
        self._opened: dict[str, _Opened | str] = {}
        self._room = room

    def at(self, where: Mapping[str, Any]) -> RecordText:
        path, place, length = where["path"], where["place"], where["length"]
        if path not in self._opened:
            self._opened[path] = self._open(path)
        opened = self._opened[path]
        if isinstance(opened, str):
            return RecordText(None, missing=opened)
        if not length and opened.form.kind == "document":
            return opened.objects.get(place, RecordText(None, missing=UNREADABLE))
        try:
            if opened.content is None:
                raw = _bytes(self._files[path], place, min(length, MOST_BYTES)) if length else b"\x00"
            else:
                raw, length = _turned_record(path, opened, place)
        except Hidden as why:
            return RecordText(None, missing=str(why))
        if b"\x00" in raw:
            return RecordText(None, missing=NO_TEXT)
        text, is_cut = raw.decode("utf-8-sig" if not place else "utf-8", "replace"), length > MOST_BYTES
        is_head = opened.form.kind == "table" and not place  # of a file that could not be read, all of it
        return RecordText(text.strip(), is_cut, None if is_cut or is_head else _fields(opened, text))

    def _open(self, path: str) -> "_Opened | str":
        try:
            return self._open_file(path, self._files[path])
        except KeyError:
            return NO_FILE
        except Hidden as why:
            return str(why)
        except (ValueError, RecursionError):  # Unreadable, and what is no JSON
            return UNREADABLE

    def _open_file(self, path: str, file: DatasetFile) -> _Opened:
        head = _bytes(file, 0, LOOKED_AT)
        kind, has_turned = KINDS.get(ending_of(path), ""), is_turned(path, BytesIO(head))
        if has_turned and kind in ("", "arrays"):
            raise Hidden(NO_TEXT)
        if not has_turned:
            opened = _Opened(form_in(path, BytesIO(head)), head)
            if kind == "document":
                if file.blob.bytes > MOST_DOCUMENT:
                    raise Hidden(TOO_LARGE)
                self._take(0)
                self._read_document(path, opened, _bytes(file, 0, MOST_DOCUMENT))
            return opened
        most = MOST_DOCUMENT if kind == "document" else MOST_TURNED
        self._take(0)
        packed = _bytes(file, 0, most)
        with turned(path, BytesIO(packed), is_text=kind in TEXTS, most=most + 1) as found:
            content = found.read(most + 1)
        self._room.left -= len(packed) + len(content)
        is_whole = len(content) <= most and len(packed) == file.blob.bytes
        opened = _Opened(form_in(path, BytesIO(packed)), content[:LOOKED_AT], content, is_whole)
        if kind == "document":
            if not is_whole:
                raise Hidden(TOO_LARGE)
            self._read_document(path, opened, content)
        return opened

    def _read_document(self, path: str, opened: _Opened, content: bytes) -> None:
        self._take(DOCUMENT_WEIGHS * len(content))
        wanted = self._wanted[path]
        for number, found in enumerate(objects_of(BytesIO(content))):
            if number in wanted:
                text = encodable(json.dumps(found, ensure_ascii=False))
                is_cut = len(text) > MOST_BYTES
                opened.objects[number] = RecordText(text[:MOST_BYTES], is_cut, None if is_cut else _spelled_fields(found))

    def _take(self, count: int) -> None:
        if self._room.left <= 0:
            raise Hidden(NO_ROOM)
        self._room.left -= count


def _turned_record(path: str, opened: _Opened, place: int) -> tuple[bytes, int]:
    """The beginning of the record at `place`, and its length; more than MOST_BYTES where its end is not found."""
    content = opened.content or b""
    piece = content[place : place + LONGEST]
    if not piece:
        raise Hidden(UNREADABLE if opened.is_whole else TOO_FAR)
    form = Form("rows", opened.form.delimiter) if opened.form.kind == "table" else opened.form
    try:
        length = next(form.records(path, BytesIO(piece))).length or len(piece)
    except (ValueError, RecursionError, StopIteration):
        length = len(piece)
    if place + length >= len(content) and not opened.is_whole:
        raise Hidden(TOO_FAR)
    return piece[: min(length, MOST_BYTES)], length


def _bytes(file: DatasetFile, start: int, length: int) -> bytes:
    end = min(start + length, file.blob.bytes)
    try:
        return b"".join(store.open(file.blob.region, scope.current_id(), file.blob.sha256, start=start, end=end)) if start < end else b""
    except (store.StoreMissing, store.StoreAway) as away:
        raise Hidden(NO_FILE) from away


def _fields(opened: _Opened, text: str) -> dict[str, str] | None:
    """The record by its names, where it is a row of a table or a JSON object."""
    form = opened.form
    try:
        if form.kind == "json":
            found = json.loads(text)
            return _spelled_fields(found)
        if form.kind in ("table", "rows"):
            first = rows_of(opened.head, form.delimiter)[0]
            names = names_of(first, has_names=form.kind == "table")
            if form.kind == "rows":
                names = [f"column {number}" for number in range(1, len(names) + 1)]
            row = next(row for row in csv.reader(text.splitlines(keepends=True), delimiter=form.delimiter) if any(row))
            return dict(zip_longest(of_width(names, max(len(names), len(row))), row, fillvalue=""))
    except (ValueError, RecursionError, StopIteration, IndexError, csv.Error):
        return None
    return None


def _spelled_fields(found: object) -> dict[str, str] | None:
    return {encodable(name): _spelled(value) for name, value in fields_of(found).items()} if isinstance(found, dict) else None


def _spelled(value: object) -> str:
    return encodable(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
