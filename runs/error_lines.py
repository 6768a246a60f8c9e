"""What a program that failed said about it, and what of that is the same from run to run. Pure; its text comes from runs and is hostile."""

import hashlib
import re
from dataclasses import dataclass

TAIL_BYTES = 65_536  # of stderr that is looked at
LINES_LOOKED_AT = 200
LINES_KEPT = 5
LONGEST_LINE = 400  # characters
LONGEST_TITLE = 200

_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[@-Z\\-_])")
_WORDS = re.compile(
    r"error|exception|fatal|fail(?:ed|ure)?\b|cannot|can't|could not|unable|denied|refused|abort|panic|assert|killed|no such|not found"
    r"|out of memory|no space|segmentation|traceback|timed? ?out",
    re.IGNORECASE,
)
_TRACEBACK = "Traceback (most recent call last):"
# In this order: a time or a path holds numbers.
_DIFFERS = (
    re.compile(r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?"),
    re.compile(r"\b\d{1,2}:\d\d:\d\d(?:[.,]\d+)?\b"),
    re.compile(r"(?<![\w])(?:[A-Za-z]:)?(?:~|\.{1,2})?(?:[\\/][^\s\\/'\"`,;:()\[\]<>]+)+[\\/]?"),
    re.compile(r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b"),
    re.compile(r"\b0[xX][0-9a-fA-F]+\b"),
    re.compile(r"\b(?=[0-9a-fA-F]*\d)[0-9a-fA-F]{7,}\b"),
    re.compile(r"(?<![A-Za-z_])[-+]?\d[\d_,]*(?:\.\d+)?(?:[eE][-+]?\d+)?"),
)
GONE = "…"


@dataclass(frozen=True, slots=True)
class Cause:
    """Why a run failed: `fingerprint` is the same for runs that failed alike, `title` says it in words, `lines` are what this run said."""

    fingerprint: str
    title: str
    lines: tuple[str, ...]


def error_lines(tail: bytes) -> tuple[str, ...]:
    """The lines at the end of stderr that say what went wrong, in their order: of the last Python traceback what was raised, else the last lines
    that speak of a fault, else the last line."""
    text = _ESCAPE.sub("", tail[-TAIL_BYTES:].decode(errors="replace"))
    lines = [_printable(line)[:LONGEST_LINE].rstrip() for line in re.split(r"[\r\n]+", text)]
    lines = [line for line in lines if line.strip()][-LINES_LOOKED_AT:]
    starts = [number for number, line in enumerate(lines) if line.strip() == _TRACEBACK]
    if starts:
        raised = _raised(lines[starts[-1] + 1 :])
        if raised:
            return tuple(raised[:LINES_KEPT])
    telling = [line for line in lines if _WORDS.search(line)]
    return tuple((telling or lines[-1:])[-LINES_KEPT:])


def alike(line: str) -> str:
    """A line without what differs from run to run: times, paths, ids, addresses and numbers."""
    for pattern in _DIFFERS:
        line = pattern.sub(GONE, line)
    return re.sub(r"\s+", " ", line).strip()


def cause_of(*, reason_code: str, exit_code: int | None, exit_signal: int | None, words: str, lines: tuple[str, ...]) -> Cause:
    """Why a run failed. `words` say it where the program said nothing."""
    # A limit or a lost pool is a cause by itself: what the program was just saying is not why it ended. What labsite says of it is.
    is_own = reason_code in ("exit_code", "signal", "ended_without_done")
    said = tuple(alike(line) for line in lines) if is_own else (alike(words),)
    mark = "\n".join([reason_code, str(exit_code) if is_own else "", str(exit_signal) if is_own else "", *said])
    how = f"exit code {exit_code}" if exit_code is not None else f"signal {exit_signal}" if exit_signal is not None else ""
    title = said[-1] if said and said[-1] else alike(words) or reason_code.replace("_", " ") or "It failed"
    title = title if len(title) <= LONGEST_TITLE else f"{title[: LONGEST_TITLE - 1]}{GONE}"
    if is_own and how and said:
        title = f"{title} ({how})"
    return Cause(hashlib.sha256(mark.encode()).hexdigest(), title, lines)


def _raised(lines: list[str]) -> list[str]:
    """What a traceback ends with: the first line that is not indented, and what the message goes on with until something else is said."""
    for number, line in enumerate(lines):
        if not line.startswith((" ", "\t")):
            return lines[number : number + 2] if number + 1 < len(lines) and lines[number + 1].startswith((" ", "\t")) else [line]
    return []


def _printable(line: str) -> str:
    return "".join(character if character.isprintable() or character == "\t" else " " for character in line)
