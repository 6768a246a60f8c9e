"""The records that show an overlap, side by side: read from the stored files as bytes, nothing of them parsed or executed."""

import csv
import json
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from runs.models import OverlapCheck
from workspaces import scope, store
from workspaces.models import DatasetFile, DatasetVersion
from workspaces.text import encodable

SHOWN = 25  # pairs on a page
MOST_BYTES = 2_000  # of a record
MOST_HEAD_BYTES = 16_384  # of a table's first row
DIFFERENCES, VALUE = 10, 200


@dataclass(frozen=True, slots=True)
class ShownRecord:
    """`text` is its beginning; None where it is no text, or lies in several places at once."""

    path: str
    number: int
    text: str | None
    is_cut: bool
    fields: dict[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Difference:
    """A value that two records of tables do not share."""

    name: str
    mine: str
    other: str


@dataclass(frozen=True, slots=True)
class ShownPair:
    kind: str
    similarity: float
    record: ShownRecord
    holdout: ShownRecord

    @property
    def differences(self) -> list[Difference]:
        """In what two records with fields differ, where both have the same ones; the first ten."""
        mine, other = self.record.fields, self.holdout.fields
        if mine is None or other is None or set(mine) != set(other):
            return []
        found = [Difference(name[:VALUE], value[:VALUE], other[name][:VALUE]) for name, value in mine.items() if value != other[name]]
        return found[:DIFFERENCES]

    @property
    def is_exact(self) -> bool:
        return self.kind == "exact"


def pairs_of(check: OverlapCheck, *, start: int = 0) -> list[ShownPair]:
    """SHOWN pairs of a check from number `start` on."""
    pairs = check.pairs[start : start + SHOWN]
    mine = _files(check.version, {pair["record"]["path"] for pair in pairs})
    others = _files(check.holdout, {pair["holdout"]["path"] for pair in pairs})
    return [
        ShownPair(pair["kind"], float(pair["similarity"]), _record(pair["record"], mine), _record(pair["holdout"], others))
        for pair in pairs
    ]


def _files(version: DatasetVersion, paths: set[str]) -> dict[str, DatasetFile]:
    return {file.path: file for file in DatasetFile.objects.filter(version=version, path__in=paths).select_related("blob")}


def _record(where: dict[str, Any], files: dict[str, DatasetFile]) -> ShownRecord:
    path, number, start, length = where["path"], where["number"], where["place"], where["length"]
    file = files.get(path)
    content = _bytes(file, start, min(length, MOST_BYTES)) if file is not None and length else None
    if file is None or content is None or b"\x00" in content:
        return ShownRecord(path, number, None, is_cut=False)
    is_cut = length > MOST_BYTES
    text = content.decode("utf-8", "replace").strip()
    return ShownRecord(path, number, text, is_cut, None if is_cut else _fields(file, text, has_head=start > 0))


def _bytes(file: DatasetFile, start: int, length: int) -> bytes | None:
    try:
        return b"".join(store.open(file.blob.region, scope.current_id(), file.blob.sha256, start=start, end=start + length))
    except (store.StoreMissing, store.StoreAway):
        return None


def _fields(file: DatasetFile, text: str, *, has_head: bool) -> dict[str, str] | None:
    """The record by its names, where it is a row of a table or a JSON object."""
    ending = file.path.rpartition(".")[2].lower()
    try:
        if ending in ("jsonl", "ndjson"):
            found = json.loads(text)
            return {encodable(name): _spelled(value) for name, value in found.items()} if isinstance(found, dict) else None
        if ending in ("csv", "tsv") and has_head:
            head = (_bytes(file, 0, MOST_HEAD_BYTES) or b"").decode("utf-8-sig", "replace")
            names, row = (
                next(csv.reader([source], delimiter="\t" if ending == "tsv" else ",")) for source in (head.split("\n", 1)[0], text)
            )
            return {name: value or "" for name, value in zip_longest(names, row, fillvalue="")}
    except (ValueError, RecursionError, StopIteration, csv.Error):
        return None
    return None


def _spelled(value: object) -> str:
    return encodable(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
