"""A file of per-sample results, as a run leaves it beside a score: JSON lines of id, truth, output, score, status and
confidence. Pure; all of it may be a lie.

Read a line at a time, however long a line is; what cannot be read is counted with its number and its reason, and keeps nothing else from being
read. A sample that errored or was abstained from stays in the file, so that it stays in the denominator.
"""

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar

from runs.pools.values import MalformedError, check_text, optional_number, text

MAX_FILE_BYTES = 64 * 2**20  # read of a file; what follows is not
MAX_LINE_BYTES = 64 * 2**10
MAX_SAMPLES = 100_000
MAX_ID = 250
MAX_FAULTS = 20  # kept one by one; all are counted
MAX_SHOWN = 400  # characters of truth and output


class Status(StrEnum):
    """What became of a sample."""

    OK = "ok"
    ERRORED = "errored"
    ABSTAINED = "abstained"


@dataclass(frozen=True, slots=True)
class Sample:
    """One line. `score` is None where none was given, which only a sample that errored or was abstained from may do; `confidence` is how sure whoever
    answered was that the answer is right, 0 to 1, None where that is not said."""

    line: int
    id: str
    status: Status
    score: float | None
    truth: str
    output: str
    confidence: float | None = None
    is_fault: ClassVar[bool] = False


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with a line (from 1), or with the file as a whole (0)."""

    line: int
    reason: str
    is_fault: ClassVar[bool] = True


@dataclass(slots=True)
class Reading:
    """What a file holds, in a few numbers. `faults` are the first of `fault_count`."""

    counts: Counter[str] = field(default_factory=Counter)
    scored: int = 0
    total: float = 0.0
    fault_count: int = 0
    faults: list[Fault] = field(default_factory=list)

    @property
    def samples(self) -> int:
        return sum(self.counts.values())

    def blame(self, line: int, reason: str) -> None:
        self.fault_count += 1
        if len(self.faults) < MAX_FAULTS:
            self.faults.append(Fault(line, reason))

    def as_json(self) -> dict[str, Any]:
        """For the row of the evaluation; bounded, whatever the file holds."""
        return {
            "counts": {status.value: self.counts[status] for status in Status},
            "scored": self.scored,
            "mean": self.total / self.scored if self.scored and math.isfinite(self.total) else None,
            "fault_count": self.fault_count,
            "faults": [[fault.line, fault.reason] for fault in self.faults],
        }


def summarise(pieces: Iterable[bytes]) -> Reading:
    """Read a whole file, within its bounds."""
    reading = Reading()
    for found in read_samples(pieces):
        if isinstance(found, Fault):
            reading.blame(found.line, found.reason)
            continue
        reading.counts[found.status] += 1
        if found.score is not None:
            reading.scored += 1
            reading.total += found.score
    return reading


def read_samples(pieces: Iterable[bytes]) -> Iterator[Sample | Fault]:
    """Samples in the order of the file, and what is wrong with it where that stands. Of an id that comes twice the first counts."""
    seen: set[bytes] = set()
    for number, line in lines_of(pieces):
        if line is None:
            yield Fault(number, f"longer than {MAX_LINE_BYTES // 1024} KB")
            continue
        if number == 0:
            yield Fault(0, f"more than {MAX_FILE_BYTES // 2**20} MB; what follows was not read")
            return
        if not line.strip():
            continue
        try:
            sample = read_sample(number, line)
        except MalformedError as problem:
            yield Fault(number, str(problem))
            continue
        except (ValueError, RecursionError):
            yield Fault(number, "not JSON")
            continue
        key = hashlib.blake2b(sample.id.encode(), digest_size=12).digest()
        if key in seen:
            yield Fault(number, "its id stands above already")
            continue
        if len(seen) == MAX_SAMPLES:
            yield Fault(0, f"more than {MAX_SAMPLES:,} samples; what follows was not read")
            return
        seen.add(key)
        yield sample


def tells_truth(pieces: Iterable[bytes]) -> bool:
    """Does a line name the truth of a sample, in whatever state the rest of it is?"""
    for _, line in lines_of(pieces):
        try:
            found = json.loads(line) if line and b"truth" in line else None
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict) and "truth" in found:
            return True
    return False


def lines_of(pieces: Iterable[bytes]) -> Iterator[tuple[int, bytes | None]]:
    """Lines with their numbers, from 1; None for one that is too long, which is never held. (0, b"") where the file is longer than what is read."""
    rest, number, read, is_long = b"", 1, 0, False
    for piece in pieces:
        read += len(piece)
        if read > MAX_FILE_BYTES:
            yield 0, b""
            return
        *whole, rest = (rest + piece).split(b"\n")
        for line in whole:
            yield number, None if is_long or len(line) > MAX_LINE_BYTES else line
            number, is_long = number + 1, False
        if len(rest) > MAX_LINE_BYTES:
            is_long, rest = True, b""
    if rest or is_long:
        yield number, None if is_long else rest


def read_sample(number: int, line: bytes) -> Sample:
    """Raises MalformedError, or ValueError for what is no JSON."""
    found = json.loads(line, parse_constant=_refuse)
    if not isinstance(found, dict):
        raise MalformedError("not an object")
    name, status = text(found, "id", most=MAX_ID), found.get("status", Status.OK)
    if status not in tuple(Status):
        raise MalformedError("status is not ok, errored or abstained")
    score = optional_number(found, "score")
    if score is None and status == Status.OK:
        raise MalformedError("score is missing, and its status is ok")
    confidence = optional_number(found, "confidence", least=0)
    if confidence is not None and confidence > 1:
        raise MalformedError("confidence is not between 0 and 1")
    return Sample(number, name, Status(status), score, _spelled(found.get("truth")), _spelled(found.get("output")), confidence)


def _spelled(value: object) -> str:
    """A value as text, cut; texts as they are."""
    if value is None:
        return ""
    spelled = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    check_text(spelled)
    return spelled if len(spelled) <= MAX_SHOWN else f"{spelled[: MAX_SHOWN - 1]}…"


def _refuse(name: str) -> object:
    raise MalformedError(f"{name} is not JSON")


def disagreement(read: dict[str, Any], samples: int | None) -> str:
    """A sentence where the file does not hold as many samples as the score was said to be of; else empty."""
    held = sum(read["counts"].values())
    if samples is None or held == samples:
        return ""
    return f"The score is said to be of {samples:,} samples; {held:,} can be read in the file."
