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
ROUNDED = 5e-4  # by what part of itself a score may differ from a mean and be that mean


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


@dataclass(frozen=True, slots=True)
class Line:
    """A score line, and by which rule its contract counts: `counts_all`, what has no score stays in the denominator."""

    value: float
    samples: int | None = None
    errored: int | None = None
    abstained: int | None = None
    counts_all: bool = False
    is_lower_better: bool = False


@dataclass(frozen=True, slots=True)
class Mean:
    """The mean score of a file by the contract's rule; None where the rule gives none. `of` says of which samples, empty where all are scored."""

    value: float | None
    of: str = ""


def mean_of(read: dict[str, Any], line: Line) -> Mean:
    """Where all samples count, what has no score counts 0, as in a comparison; where lower is better nothing says what it counts."""
    mean, scored, held = read["mean"], read["scored"], sum(read["counts"].values())
    if scored == held:
        return Mean(mean)
    if not line.counts_all:
        return Mean(mean, f"of the {scored:,} that were scored" if scored else "")
    if line.is_lower_better:
        return Mean(None, f"no mean over all: {held - scored:,} have no score, and where lower is better nothing says what they count")
    whole = 0.0 if not scored else None if mean is None else mean * scored / held
    return Mean(whole, "over all of them, as the contract counts")


def disagreements(read: dict[str, Any], line: Line) -> list[str]:
    """A sentence for each thing that the score line says and its file does not. A line that is silent about what erred or was abstained from is told
    where the contract counts all samples."""
    found, held = list[str](), sum(read["counts"].values())
    if line.samples is not None and held != line.samples:
        found.append(f"The score is said to be of {line.samples:,} samples; {held:,} can be read in the file.")
    for status, said in ((Status.ERRORED, line.errored), (Status.ABSTAINED, line.abstained)):
        amount = read["counts"].get(status.value, 0)
        if said is not None and said != amount:
            found.append(f"The score is said to have {said:,} {status.value} samples; in the file there are {amount:,}.")
        elif said is None and amount and line.counts_all:
            found.append(
                f"The score does not say how many samples {status.value}; in the file there are {amount:,}, and the contract counts all."
            )
    return [*found, *_left_out(read, line)]


def _left_out(read: dict[str, Any], line: Line) -> list[str]:
    """A score that is the mean of those that were scored, under a contract that counts all. A metric need not be a mean of the samples' scores: of
    one that is neither mean nothing is said."""
    mean, missing = read["mean"], sum(read["counts"].values()) - read["scored"]
    if not line.counts_all or not missing or mean is None or not math.isclose(line.value, mean, rel_tol=ROUNDED):
        return []
    whole = mean_of(read, line)
    if whole.value is None:
        return [
            f"The score is the mean of the {read['scored']:,} samples that were scored; the contract counts all, and {missing:,} have no score."
        ]
    if math.isclose(line.value, whole.value, rel_tol=ROUNDED):
        return []
    return [
        f"The score is the mean of the {read['scored']:,} samples that were scored; over all, as the contract counts, it is {whole.value:.6g}."
    ]
