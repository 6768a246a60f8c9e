"""Which records of one version stand in another: the same, or nearly. Pure.

The other side, a holdout, is held in memory, 116 bytes a record at most; the version passes by in pieces.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import BinaryIO, Literal

import numpy as np

from runs.overlap.forms import is_turned, plain
from runs.overlap.reading import Form, form_of, record_of, records_of
from runs.overlap.sidecar import RECORD, SKETCH, Contents, Sidecar, Source
from runs.overlap.texts import BANDS, NEAR, shingles_of, similarity
from runs.overlap.values import Record

Kind = Literal["exact", "near"]
MOST_PAIRS = 100  # kept, so that a person can look
MOST_LOOKS = 200_000  # at two records, in one check; beyond, the count of near ones is the least there are
MOST_CANDIDATES = 50  # of one record
MOST_TURNED = 32  # unpacked files that are held open


@dataclass(frozen=True, slots=True)
class Pair:
    """Record number `record` of a version and `other` of the holdout, each counted from 0 within its version."""

    kind: Kind
    record: int
    other: int
    similarity: float


@dataclass(slots=True)
class Overlap:
    """Records of the version that stand in the holdout. `is_least`: there may be more near ones."""

    exact: int = 0
    near: int = 0
    is_least: bool = False
    pairs: list[Pair] = field(default_factory=list)


class Side:
    """A version with its kept hashes and its files, of which single records are read again."""

    def __init__(self, sidecar: Sidecar, sources: Sequence[Source]) -> None:
        self.sidecar = sidecar
        self._places = {source.path: source.place for source in sources}
        self._forms: dict[str, Form] = {}
        self._first_rows: dict[str, bytes] = {}
        self._is_turned: dict[str, bool] = {}
        self._turned: dict[str, tuple[ExitStack, BinaryIO]] = {}
        self._document: tuple[str, list[Record]] = ("", [])

    @property
    def contents(self) -> Contents:
        return self.sidecar.contents

    def is_turned(self, path: str) -> bool:
        if path not in self._is_turned:
            with self._places[path].open("rb") as file:
                self._is_turned[path] = is_turned(path, file)
        return self._is_turned[path]

    def shingles(self, number: int) -> np.ndarray:
        part, row = self.contents.part_of(number), self.sidecar.record(number)
        if part.path not in self._forms:
            self._forms[part.path] = form_of(part.path, self._places[part.path])
        form = self._forms[part.path]
        if form.kind == "document":  # whose records lie within one another; the last one is held
            if self._document[0] != part.path:
                self._document = (part.path, list(records_of(part.path, self._places[part.path], form)))
            return shingles_of(self._document[1][number - part.first])
        content = self._bytes(part.path, int(row["place"]), int(row["length"]))
        first_row = self._first_row(part.path, part.first) if form.kind in ("table", "rows") else b""
        return shingles_of(record_of(part.path, content, form, first_row=first_row))

    def _first_row(self, path: str, first: int) -> bytes:
        """The bytes before a table's first record, which name its columns; where there are none, that record's."""
        if path not in self._first_rows:
            row = self.sidecar.record(first)
            self._first_rows[path] = self._bytes(path, 0, int(row["place"]) or int(row["length"]))
        return self._first_rows[path]

    def _bytes(self, path: str, start: int, length: int) -> bytes:
        if not self.is_turned(path):
            with self._places[path].open("rb") as file:
                file.seek(start)
                return file.read(length)
        if path not in self._turned:
            if len(self._turned) >= MOST_TURNED:
                self._turned.pop(next(iter(self._turned)))[0].close()
            opened = ExitStack()
            self._turned[path] = (opened, opened.enter_context(plain(path, self._places[path], is_text=True)))
        turned = self._turned[path][1]
        turned.seek(start)
        return turned.read(length)


def compare(version: Side, holdout: Side) -> Overlap:
    """Exact ones first; what is not the same may be nearly the same."""
    found = Overlap()
    others = _whole(holdout.sidecar.records(), RECORD)
    if not len(others):
        return found
    is_known = np.zeros(version.contents.records, bool)
    kinds: tuple[Kind, Kind] = ("exact", "near")
    for kind in kinds:
        order = np.argsort(others[kind], kind="stable")
        keys = others[kind][order]
        for first, rows in version.sidecar.records():
            places = np.minimum(np.searchsorted(keys, rows[kind]), len(keys) - 1)
            hits = np.flatnonzero((keys[places] == rows[kind]) & ~is_known[first : first + len(rows)])
            is_known[first + hits] = True
            _count(found, kind, len(hits))
            for hit in hits[: _room(found, kind)]:
                found.pairs.append(Pair(kind, int(first + hit), int(order[places[hit]]), 1.0))
    _alike(found, version, holdout, is_known)
    return found


def _alike(found: Overlap, version: Side, holdout: Side, is_known: np.ndarray) -> None:
    others = _whole(holdout.sidecar.sketches(), SKETCH)
    if not len(others):
        return
    orders = [np.argsort(others["bands"][:, band], kind="stable") for band in range(BANDS)]
    keys = [others["bands"][order, band] for band, order in enumerate(orders)]
    looks = 0
    kept: dict[int, np.ndarray] = {}
    for _, rows in version.sidecar.sketches():
        rows = rows[~is_known[rows["record"]]]
        for record, candidates in _candidates(rows, keys, orders):
            mine = version.shingles(record)
            for candidate in candidates:
                if looks >= MOST_LOOKS:
                    found.is_least = True
                    return
                looks += 1
                other = int(others["record"][candidate])
                if other not in kept:
                    if len(kept) >= 20_000:
                        kept.clear()
                    kept[other] = holdout.shingles(other)
                alike = similarity(mine, kept[other])
                if alike >= NEAR:
                    _count(found, "near", 1)
                    if _room(found, "near"):
                        found.pairs.append(Pair("near", record, other, round(alike, 4)))
                    break


def _candidates(rows: np.ndarray, keys: list[np.ndarray], orders: list[np.ndarray]) -> Iterator[tuple[int, list[int]]]:
    """Of each record that shares a band with some of the holdout, those, the ones that share most bands first."""
    starts = np.stack([np.searchsorted(keys[band], rows["bands"][:, band]) for band in range(BANDS)])
    ends = np.stack([np.searchsorted(keys[band], rows["bands"][:, band], side="right") for band in range(BANDS)])
    for place in np.flatnonzero((ends > starts).any(axis=0)):
        hits = [
            orders[band][starts[band, place] : min(ends[band, place], starts[band, place] + MOST_CANDIDATES)]
            for band in np.flatnonzero(ends[:, place] > starts[:, place])
        ]
        texts, shared = np.unique(np.concatenate(hits), return_counts=True)
        yield int(rows["record"][place]), texts[np.argsort(-shared, kind="stable")][:MOST_CANDIDATES].tolist()


def _count(found: Overlap, kind: Kind, more: int) -> None:
    if kind == "exact":
        found.exact += more
    else:
        found.near += more


def _room(found: Overlap, kind: Kind) -> int:
    """How many more pairs are kept; a quarter is left to near ones."""
    most = MOST_PAIRS if kind == "near" else MOST_PAIRS * 3 // 4
    return max(0, most - len(found.pairs))


def _whole(pieces: Iterator[tuple[int, np.ndarray]], dtype: np.dtype) -> np.ndarray:
    found = [piece for _, piece in pieces]
    return np.concatenate(found) if found else np.empty(0, dtype)
