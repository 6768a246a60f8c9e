"""What every pool can do, in plain values: an order goes in, observations and files come out."""

from __future__ import annotations

import errno
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, List, Protocol

if TYPE_CHECKING:
    from typing import TypeAlias

JSON: TypeAlias = "Mapping[str, JSON] | Sequence[JSON] | str | int | float | bool | None"

SCHEMA = "labsite.job.v1"
READABLE = frozenset({"metrics.jsonl", "events.jsonl", "stdout.log", "stderr.log"})
SAMPLES = "samples.jsonl"  # what the launcher measures; lines like those of metrics.jsonl
MAX_DEPTH = 32
MAX_COMPONENT_BYTES = 255

# What no name may hold: it could not be kept or shown, or would make a name read as another one. The same as `workspaces.text.unprintable`, which
# this file cannot ask, since it travels alone; a test holds the two together.
_STRANGE = frozenset({"Cc", "Cs", "Zl", "Zp"})
_OVERRIDES = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}\Z", re.ASCII)


class PoolError(Exception):
    """The pool did not do what was asked; `reason` is one line for people and names no secret."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class NotPlain(PoolError):
    """What stands in a file's place is none of the run's own: a link, a special file, somebody else's. Asking again finds the same; after any
    other error the file may be read yet."""


class NoAnswer(PoolError):
    """Whoever should say did not answer, or not in time: whether it did what was asked is not known. Or it could not do it just now."""


# What goes by, or once somebody has made room: it says nothing of the file, or the folder, that was asked for.
PASSING = frozenset({
    errno.EAGAIN, errno.EDQUOT, errno.EHOSTDOWN, errno.EINTR, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOSPC, errno.ENOTCONN,
    errno.ESTALE, errno.ETIMEDOUT,
})  # fmt: skip


def in_short(words: str, error: OSError) -> PoolError:
    """An error of the file system with `words` before it; NoAnswer where it passes."""
    return (NoAnswer if error.errno in PASSING else PoolError)(f"{words}: {error.strerror}")


class Status(str, Enum):
    """What a pool can say about an attempt. `UNKNOWN` is an answer of its own and never means that the attempt ended."""

    PENDING = "pending"
    RUNNING = "running"
    EXITED = "exited"
    MISSING = "missing"
    UNKNOWN = "unknown"

    __str__ = str.__str__


@dataclass(frozen=True)
class StagedFile:
    """A file to be copied into the run folder; `path` is relative to its part of the folder, `sha256` is checked while copying."""

    path: str
    source: Path
    sha256: str
    executable: bool = False


@dataclass(frozen=True)
class StagedInput:
    """The files of one declared input, staged under `inputs/<slug>/`."""

    slug: str
    files: tuple[StagedFile, ...]


@dataclass(frozen=True)
class Order:
    """One attempt: its key (chosen before any pool is called), its job.json, its files, its secrets by name."""

    key: str
    workspace: str
    job: Mapping[str, JSON]
    code: tuple[StagedFile, ...]
    inputs: tuple[StagedInput, ...]
    secrets: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True)
class Exit:
    """How an attempt ended. Exactly one of `code` and `signal` is set, or neither where nobody saw the end.

    `reason`: exit, wall_limit, cancelled, log_limit, output_limit, memory_limit, launcher_lost, engine_failed, engine_cancelled. Times are
    seconds UTC.
    """

    code: int | None
    signal: int | None
    started_at: float
    ended_at: float
    reason: str
    peak_memory_bytes: int | None
    cpu_seconds: float | None

    @property
    def has_run(self) -> bool:
        """False for an attempt that was barred before its command was started: it has no code, no signal, and was not lost."""
        return self.code is not None or self.signal is not None or self.reason == "launcher_lost"

    def within(self, first: float, last: float) -> Exit:
        """An end as it can have been, by a clock of our own that said `first` before the attempt could start and says `last` now.

        The clock over there may be off: how long it took, which is what is charged, stands as it was said, and is moved into that time as a whole.
        A run without isolation that writes its own end may say anything; time that never was is not charged.
        """
        last = max(first, last)
        span = min(max(self.ended_at - self.started_at, 0.0), last - first)
        started_at = min(max(self.started_at, first), last - span)
        return replace(
            self,
            started_at=started_at,
            ended_at=started_at + span,
            code=self.code if self.code is None or 0 <= self.code <= 255 else 255,
            signal=self.signal if self.signal is None or 0 <= self.signal <= 128 else 0,
            peak_memory_bytes=None if self.peak_memory_bytes is None else min(max(self.peak_memory_bytes, 0), 2**63 - 1),
            cpu_seconds=None if self.cpu_seconds is None else min(max(self.cpu_seconds, 0.0), 1e9),
        )


@dataclass(frozen=True)
class Observation:
    """What the pool sees of an attempt now; `heartbeat_at` in seconds UTC, `reason` in words where the status needs them.

    `native`: of a pending one, the id under which an engine holds it in a queue of its own; it need not be submitted again.
    """

    status: Status
    exit: Exit | None = None
    heartbeat_at: float | None = None
    reason: str = ""
    native: str = ""


@dataclass(frozen=True)
class OutputFile:
    """A regular file below `outputs/`; `path` is relative to it."""

    path: str
    bytes: int


LEFT = ("names", "more", "closed", "links")  # names that cannot be kept; too many; not the run's own; links out of outputs/


class OutputList(List[OutputFile]):
    """The output files of an attempt; how many entries were skipped that hold nothing of their own (links to other outputs, pipes, sockets);
    and what was left that may hold work: for each of `LEFT` how many entries, and the first of them."""

    skipped: int = 0

    def __init__(self, files: Iterable[OutputFile] = ()) -> None:
        super().__init__(files)
        self.left: dict[str, tuple[int, str]] = {}

    def leave(self, why: str, path: str) -> None:
        count, first = self.left.get(why, (0, path))
        self.left[why] = (count + 1, min(first, path))


class Pool(Protocol):
    """A place where attempts run. Every method may raise PoolError."""

    def submit(self, order: Order) -> None:
        """Stage and start; looks the key up first, so that submitting twice never starts twice."""

    def observe(self, workspace: str, key: str) -> Observation:
        """What is the attempt doing now; cheap."""

    def cancel(self, workspace: str, key: str, *, grace_seconds: float) -> None:
        """Ask for the end. Whether it ended is for the next observation to say."""

    def read(self, workspace: str, key: str, name: str, *, offset: int, limit: int) -> bytes:
        """At most `limit` bytes from `offset` of one of `READABLE` or of `SAMPLES`; empty where the file does not exist yet."""

    def outputs(self, workspace: str, key: str) -> OutputList:
        """Regular files below `outputs/`, by path, and what was left out; links and specials are never followed."""

    def open_output(self, workspace: str, key: str, path: str) -> BinaryIO:
        """Open one output for reading; no component of its path may be a link."""

    def open_path(self, path: str, *, below: Sequence[str], never: Sequence[str]) -> BinaryIO:
        """Open a file of the pool's machine that belongs to no attempt, below one of the folders that a site operator listed and in none of `never`
        nor of the pool itself (`listed.py`). Reading it ends with OSError where it changes meanwhile."""

    def living(self, workspace: str) -> list[str]:
        """Keys of the workspace's attempts that are here and have no end; may name more than run, and what is none of the workspace's."""

    def remove(self, workspace: str, key: str) -> None:
        """Remove the attempt's folder after its confirmed end; does nothing where there is none."""

    def tidy(self, *, older_than_seconds: float = 3600) -> int:
        """Remove what a killed labsite left half staged or half removed, of all workspaces, untouched for so long; how many things that were."""


def check_name(name: str, what: str) -> str:
    """Return a name that is safe as one component of a path: letters, digits, `_`, `-`; PoolError otherwise."""
    if not _NAME.match(name):
        raise PoolError(f"{what} may have letters, digits, '-' and '_' only, at most 128")
    return name


def is_component(name: str) -> bool:
    """Whether `name` is one plain component of a path: UTF-8 that can be shown, no separator, not `.` or `..`, at most 255 bytes."""
    if name in {"", ".", ".."} or "/" in name or (not name.isprintable() and any(map(is_strange, name))):
        return False
    return len(name.encode()) <= MAX_COMPONENT_BYTES


def is_strange(character: str) -> bool:
    """Whether no name may hold it: control characters, halves of surrogate pairs, line separators, direction overrides. Joiners, marks and blanks
    of whichever script are none of them."""
    return character in _OVERRIDES or unicodedata.category(character) in _STRANGE


def path_parts(path: str) -> tuple[str, ...]:
    """Split a relative path into its checked components; PoolError for anything that could leave its folder."""
    parts = tuple(path.split("/"))
    if len(parts) > MAX_DEPTH:
        raise PoolError(f"a path is deeper than {MAX_DEPTH} folders")
    if not all(is_component(part) for part in parts):
        raise PoolError(f"not a plain relative path: {path[:200]!a}")
    return parts
