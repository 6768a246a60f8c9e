"""Arrays of NumPy, .npy and .npz: row by row over all arrays with the same number of rows. Read in pieces, never unpickled. Pure.

One archive may hold several sets, as `x_train`, `y_train`, `x_test`, `y_test`: arrays of one length are a set, whose rows are records.

An archive of Go positions (schema autogo.positions.v1: `stones`, `visits`, `owners` over the points of a board) is compared under the eight
symmetries, and without the number of the game, which counts within one file only.
"""

import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from io import BytesIO
from math import isqrt, prod
from tokenize import TokenError
from typing import IO, BinaryIO

import numpy as np

from runs.overlap.values import MIB, WHOLE_FILE, Record, Unreadable, hashed

AT_ONCE = 4 * MIB  # bytes of rows
LONGEST_ROW = 64 * MIB
LEAST_ROWS = 100  # of a set beside the longest one
_POSITIONS = frozenset({"stones", "visits", "owners", "outcome", "black_to_move", "game"})
_OF_POINTS = ("stones", "visits", "owners")


@dataclass(slots=True)
class Array:
    """An array that is being read: where its rows come from, and what they are."""

    name: str
    source: IO[bytes]
    dtype: np.dtype
    shape: tuple[int, ...]

    @property
    def row_bytes(self) -> int:
        return int(self.dtype.itemsize) * prod(self.shape[1:])

    def rows(self, count: int) -> np.ndarray:
        content = self.source.read(count * self.row_bytes)
        if len(content) < count * self.row_bytes:
            raise Unreadable(f"{self.name} ends before its last row")
        return np.frombuffer(content, self.dtype).reshape(count, *self.shape[1:])


def archive_records(file: BinaryIO) -> Iterator[Record]:
    """Rows of an .npz file, of its longest arrays first; then, counted on, those of other lengths that look like records. What is short, or one
    list by itself (names of classes, means), is about the file."""
    try:
        with zipfile.ZipFile(file) as archive, ExitStack() as opened:
            found = [_opened(name.removesuffix(".npy"), opened.enter_context(archive.open(name))) for name in sorted(archive.namelist())]
            before = 0
            for arrays in _sets(found):
                yield from _records(arrays, before)
                before += arrays[0].shape[0]
    except Unreadable:
        raise
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError, OSError, ValueError) as fault:
        raise Unreadable(f"it is no archive of arrays: {fault}"[:300]) from fault


def array_records(file: BinaryIO) -> Iterator[Record]:
    """Rows of an .npy file."""
    found = _opened("array", file)
    yield from _records([found] if found.shape else [], 0)


def _sets(found: list[Array]) -> list[list[Array]]:
    by_length: dict[int, list[Array]] = {}
    for array in found:
        if array.shape:
            by_length.setdefault(array.shape[0], []).append(array)
    longest, *others = [by_length[length] for length in sorted(by_length, reverse=True)] or [[]]
    return [longest, *(arrays for arrays in others if arrays[0].shape[0] >= LEAST_ROWS and (len(arrays) > 1 or len(arrays[0].shape) > 1))]


def _opened(name: str, source: IO[bytes]) -> Array:
    try:
        version = np.lib.format.read_magic(source)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, is_fortran, dtype = read(source)
    except (ValueError, TokenError) as fault:
        raise Unreadable(f"{name} is no array: {fault}"[:300]) from fault
    if any(size < 0 for size in shape):
        raise Unreadable(f"{name} is no array: a size of it is below zero")
    if dtype.hasobject:
        raise Unreadable(f"{name} holds Python objects, which are never opened")
    found = Array(name, source, dtype, tuple(map(int, shape)))
    return _by_rows(found) if is_fortran and len(shape) > 1 else found


def _by_rows(array: Array) -> Array:
    """One that is stored by columns is held in memory."""
    wanted = int(array.dtype.itemsize) * prod(array.shape)
    if wanted > WHOLE_FILE:
        raise Unreadable(f"{array.name} is stored by columns and has more than {WHOLE_FILE // MIB} MiB")
    content = array.source.read(wanted)
    if len(content) < wanted:
        raise Unreadable(f"{array.name} ends before its last row")
    by_columns = np.frombuffer(content, array.dtype).reshape(array.shape, order="F")
    return Array(array.name, BytesIO(by_columns.tobytes(order="C")), array.dtype, array.shape)


def _records(arrays: list[Array], before: int) -> Iterator[Record]:
    if not arrays or not arrays[0].shape[0]:
        raise Unreadable("there are no rows in it")
    row_bytes = sum(array.row_bytes for array in arrays)
    if row_bytes > LONGEST_ROW:
        raise Unreadable(f"a row of it has more than {LONGEST_ROW // MIB} MiB")
    size = _board(arrays)
    count = max(1, AT_ONCE // max(1, row_bytes))
    for start in range(0, arrays[0].shape[0], count):
        part = {array.name: array.rows(min(count, array.shape[0] - start)) for array in arrays}
        if size:
            part.pop("game")
        near = _symmetric(part, size) if size else _hashes([_rounded(rows) for rows in part.values()])
        for place, (exact, nearly) in enumerate(zip(_hashes(list(part.values())), near, strict=True)):
            yield Record(exact, nearly, before + start + place, 0)
    for array in arrays:
        if array.source.read(1):
            raise Unreadable(f"{array.name} goes on behind its last row")


def _board(arrays: list[Array]) -> int:
    """The size of the board where these are positions of Go, else 0."""
    shapes = {array.name: array.shape[1:] for array in arrays}
    if set(shapes) != _POSITIONS or len(shapes["owners"]) != 1:
        return 0
    points = shapes["owners"][0]
    fits = shapes["stones"] == (2, points) and shapes["visits"] == (points + 1,)
    return isqrt(points) if fits and isqrt(points) ** 2 == points else 0


def _hashes(parts: list[np.ndarray]) -> list[int]:
    rows = [np.ascontiguousarray(part).reshape(len(part), -1) for part in parts]
    return [hashed(b"".join(row[place].tobytes() for row in rows)) for place in range(len(rows[0]))]


def _symmetric(part: dict[str, np.ndarray], size: int) -> list[int]:
    """Of each row the smallest of its hashes under the eight symmetries, numbers rounded."""
    points = np.arange(size * size).reshape(size, size)
    turned = {name: _rounded(rows) for name, rows in part.items()}
    found = []
    for symmetry in range(8):
        board = np.rot90(points if symmetry < 4 else points.T, symmetry % 4).ravel()
        orders = {"stones": board, "owners": board, "visits": np.append(board, size * size)}
        found.append(_hashes([rows[..., orders[name]] if name in _OF_POINTS else rows for name, rows in turned.items()]))
    return [min(forms) for forms in zip(*found, strict=True)]


def _rounded(rows: np.ndarray) -> np.ndarray:
    """Numbers rounded to four significant digits; what is no number stays."""
    if rows.dtype.kind not in "fiu":
        return rows
    wide = rows.astype(np.float64)
    with np.errstate(all="ignore"):
        scale = np.where((wide == 0) | ~np.isfinite(wide), 1.0, 10.0 ** (3 - np.floor(np.log10(np.abs(wide)))))
        near = np.where(np.isfinite(wide * scale), np.round(wide * scale) / scale, wide)
    return np.asarray(near.astype(np.float32) + np.float32(0))  # one zero, and no trace of how the rounding came about
