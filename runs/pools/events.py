"""The events that a run may write, one dataclass for each type, and how each is read from its JSON."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from runs.pools.base import PoolError, path_parts
from runs.pools.values import MalformedError, integer, mapping, number, optional_integer, optional_number, optional_text, text

MAX_NAME = 250
MAX_URI = 1000
_SHA256 = re.compile(r"[0-9a-f]{64}\Z")
_CURRENCY = re.compile(r"[A-Z]{3}\Z")

Fields: TypeAlias = dict[str, object]


@dataclass(frozen=True)
class Artifact:
    """A file below outputs/ that is worth keeping under a name."""

    path: str
    name: str
    kind: str
    metadata: Fields


@dataclass(frozen=True)
class DatasetFile:
    """A file below outputs/ that becomes a version of a dataset."""

    path: str
    name: str
    records: int | None


@dataclass(frozen=True)
class Score:
    """A result on a benchmark; `stderr` is the standard error. `samples` is the denominator: of them `errored` gave an error instead of an answer,
    and `abstained` were not answered; None where the run does not say."""

    benchmark: str
    metric: str
    value: float
    stderr: float | None
    samples: int | None
    errored: int | None = None
    abstained: int | None = None
    samples_file: str = ""  # an output with one line of JSON for each sample
    subject: str = ""  # which input was measured, by its slug, where a run has read several artifacts


@dataclass(frozen=True)
class Input:
    """The run has read something that it had not declared: where it lies, its SHA-256 in hex (one of them at least), and what it is."""

    uri: str
    sha256: str
    what: str


@dataclass(frozen=True)
class MemoryRead:
    """The run used a memory entry."""

    entry: str
    trust: str


@dataclass(frozen=True)
class MemoryWrite:
    """The run proposes a memory entry."""

    collection: str
    kind: str
    body: object
    evidence: object


@dataclass(frozen=True)
class ApiSpend:
    """Money spent on an interface outside, in micro-units of `currency`."""

    micros: int
    currency: str
    what: str


@dataclass(frozen=True)
class Progress:
    """How far the run is; `total` is None where it cannot know."""

    done: float
    total: float | None
    text: str


@dataclass(frozen=True)
class Note:
    """A line for people."""

    text: str


@dataclass(frozen=True)
class Done:
    """The run's own word on its end; the exit code decides all the same."""

    status: str
    reason: str


@dataclass(frozen=True)
class Unknown:
    """An event of a type that this version does not know, kept as it was."""

    type: str
    body: Fields


Event: TypeAlias = Artifact | DatasetFile | Score | Input | MemoryRead | MemoryWrite | ApiSpend | Progress | Note | Done | Unknown


def read_event(found: Fields) -> Event:
    """The event in an object of JSON whose texts are checked; MalformedError where a field of a known type is missing or wrong."""
    kind = text(found, "type", most=MAX_NAME)
    read = _READERS.get(kind)
    return Unknown(kind, found) if read is None else read(found)


def _path(found: Fields, name: str = "path") -> str:
    path = text(found, name)
    try:
        path_parts(path)
    except PoolError as error:
        raise MalformedError(f"{name} is not a plain relative path") from error
    return path


def _name(found: Fields, name: str) -> str:
    return text(found, name, most=MAX_NAME)


def _artifact(found: Fields) -> Artifact:
    return Artifact(_path(found), _name(found, "name"), optional_text(found, "kind", most=MAX_NAME), mapping(found, "metadata"))


def _dataset(found: Fields) -> DatasetFile:
    return DatasetFile(_path(found), _name(found, "name"), optional_integer(found, "records"))


def _score(found: Fields) -> Score:
    stderr, samples = (optional_number(found, "stderr", least=0), optional_integer(found, "samples"))
    errored, abstained = optional_integer(found, "errored"), optional_integer(found, "abstained")
    if errored is not None or abstained is not None:
        if samples is None:
            raise MalformedError("errored and abstained are parts of samples, which is missing")
        if (errored or 0) + (abstained or 0) > samples:
            raise MalformedError(f"{errored or 0} errored and {abstained or 0} abstained are more than the {samples} samples")
    file = "" if found.get("samples_file") is None else _path(found, "samples_file")
    subject = optional_text(found, "subject", most=MAX_NAME)
    return Score(
        _name(found, "benchmark"), _name(found, "metric"), number(found, "value"), stderr, samples, errored, abstained, file, subject
    )


def _input(found: Fields) -> Input:
    uri, sha256 = optional_text(found, "uri", most=MAX_URI), optional_text(found, "sha256", most=64).lower()
    if sha256 and not _SHA256.match(sha256):
        raise MalformedError("sha256 is not 64 hex digits")
    if not uri and not sha256:
        raise MalformedError("uri and sha256 are both missing")
    return Input(uri, sha256, optional_text(found, "what", most=MAX_NAME))


def _memory_read(found: Fields) -> MemoryRead:
    return MemoryRead(_name(found, "entry"), optional_text(found, "trust", most=MAX_NAME))


def _memory_write(found: Fields) -> MemoryWrite:
    if found.get("body") is None:
        raise MalformedError("body is missing")
    return MemoryWrite(_name(found, "collection"), _name(found, "kind"), found["body"], found.get("evidence"))


def _api_spend(found: Fields) -> ApiSpend:
    currency = text(found, "currency", most=3)
    if not _CURRENCY.match(currency):
        raise MalformedError("currency is not three capital letters")
    return ApiSpend(integer(found, "micros"), currency, optional_text(found, "what"))


def _progress(found: Fields) -> Progress:
    return Progress(number(found, "done", least=0), optional_number(found, "total", least=0), optional_text(found, "text"))


def _note(found: Fields) -> Note:
    return Note(text(found, "text"))


def _done(found: Fields) -> Done:
    return Done(_name(found, "status"), optional_text(found, "reason"))


_READERS: dict[str, Callable[[Fields], Event]] = {
    "artifact": _artifact,
    "dataset": _dataset,
    "score": _score,
    "input": _input,
    "memory_read": _memory_read,
    "memory_write": _memory_write,
    "api_spend": _api_spend,
    "progress": _progress,
    "note": _note,
    "done": _done,
}
