"""Read what a run has appended to metrics.jsonl and events.jsonl, a piece at a time. Pure; everything in it may be a lie or broken.

Only whole lines are consumed. Of a line longer than `MAX_LINE_BYTES` that has no end yet all but its last `MAX_LINE_BYTES + 1` bytes are
consumed: it is never held in memory, and its end is still seen to belong to a line that was too long. Callers read pieces of at least
`PIECE_BYTES`, so that each call makes progress.
"""

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from runs.pools.events import Event, read_event
from runs.pools.values import MalformedError, check_text, integer, moment, text

MAX_LINE_BYTES = 64 * 1024
PIECE_BYTES = 4 * MAX_LINE_BYTES
MAX_BAD_KEPT = 20
MAX_KEY_CHARACTERS = 250

T = TypeVar("T")

_NAMED = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


@dataclass(frozen=True)
class Point:
    """One value of a metric; `time` in seconds UTC where the run gave one."""

    key: str
    value: float
    step: int
    time: float | None


@dataclass(frozen=True)
class BadLine:
    """A line that could not be read: its number in the file, from 1, and why."""

    number: int
    reason: str


@dataclass
class BadLines:
    """How many lines could not be read, and the first of them."""

    count: int = 0
    first: list[BadLine] = field(default_factory=list)

    def add(self, number: int, reason: str) -> None:
        self.count += 1
        if len(self.first) < MAX_BAD_KEPT:
            self.first.append(BadLine(number, reason))


class Metrics(NamedTuple):
    """Points of one piece; the next piece starts `consumed_bytes` further and `lines` later."""

    points: list[Point]
    bad_lines: BadLines
    consumed_bytes: int
    lines: int


class Events(NamedTuple):
    """Events of one piece, each with the number of its line."""

    events: list[tuple[int, Event]]
    bad_lines: BadLines
    consumed_bytes: int
    lines: int


def parse_metrics(chunk: bytes, first_line: int) -> Metrics:
    """Read a piece of metrics.jsonl whose first line has the number `first_line`."""
    points, bad, consumed, lines = _parse(chunk, first_line, _point)
    return Metrics([point for _, point in points], bad, consumed, lines)


def parse_events(chunk: bytes, first_line: int) -> Events:
    """Read a piece of events.jsonl; types that are not known are kept as they are."""
    return Events(*_parse(chunk, first_line, _event))


def _parse(chunk: bytes, first_line: int, read: Callable[[bytes], T]) -> tuple[list[tuple[int, T]], BadLines, int, int]:
    found: list[tuple[int, T]] = []
    bad = BadLines()
    number, end = first_line, 0
    for line in _whole_lines(chunk):
        end += len(line) + 1
        if line.strip():
            try:
                if len(line) > MAX_LINE_BYTES:
                    raise MalformedError(f"longer than {MAX_LINE_BYTES} bytes")
                found.append((number, read(line)))
            except (MalformedError, ValueError, RecursionError) as problem:
                bad.add(number, str(problem) if isinstance(problem, MalformedError) else "not JSON")
        number += 1
    rest = len(chunk) - end
    return found, bad, end + max(0, rest - MAX_LINE_BYTES - 1), number - first_line


def _whole_lines(chunk: bytes) -> Iterator[bytes]:
    lines = chunk.split(b"\n")
    yield from lines[:-1]


def _object(line: bytes, constant: Callable[[str], object]) -> dict[str, object]:
    value = json.loads(line, parse_constant=constant)
    if not isinstance(value, dict):
        raise MalformedError("not an object")
    return value


def _refuse(name: str) -> object:
    raise MalformedError(f"{name} is not JSON")


def _point(line: bytes) -> Point:
    # Python's own json writes NaN and the infinities bare: taken here as the quoted ones that the contract names.
    found = _object(line, _NAMED.__getitem__)
    key = text(found, "key", most=MAX_KEY_CHARACTERS)
    time = moment(found, "time")
    return Point(key, _value(found.get("value")), integer(found, "step", least=-(2**63)), time)


def _value(value: object) -> float:
    if isinstance(value, str) and value in _NAMED:
        return _NAMED[value]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise MalformedError('value is not a number, "NaN", "Infinity" or "-Infinity"')
    try:
        return float(value)
    except OverflowError as error:
        raise MalformedError("value is too large") from error


def _event(line: bytes) -> Event:
    found = _object(line, _refuse)
    check_text(found)
    return read_event(found)
