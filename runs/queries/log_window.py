"""The part of a log that a page shows: its end, or the lines around one that was linked to, numbered from the log's first line.

What is read and shown is bounded by `WINDOW` and `LINES` however long the log is; only the counting of lines goes over all of it
(runs.queries.log), 64 MiB at most, which is where launchers cut logs off.
"""

import bisect
import itertools
from dataclasses import dataclass

from runs.models import Attempt, Run
from runs.queries.log import PIECE, LogFile, LogPiece, open_log

WINDOW = 196_608  # bytes shown at once
LINES = 500  # lines shown at once
LINES_BEFORE = 40  # of context above a linked line


@dataclass(frozen=True, slots=True)
class LogWindow:
    """Whole lines, the first of them number `first`. Reading goes on at `next_offset` with line `next_line`."""

    text: bytes
    first: int
    next_offset: int
    next_line: int
    is_final: bool  # nothing comes after these lines
    is_end: bool  # nothing stands after these lines yet


def log_window(run: Run, name: str, *, attempt: Attempt | None, line: int | None = None) -> LogWindow:
    """The log's end, or with `line` the lines from a little before it; the end as well where it has no such line."""
    log = open_log(run, name, attempt)
    counts = log.lines_per_piece()
    start = max(1, line - LINES_BEFORE) if line else None
    if start is not None and start <= sum(counts) + 1:
        return _from_line(log, counts, start)
    return _end(log, counts)


def log_after(run: Run, name: str, *, attempt: Attempt | None, offset: int, line: int) -> LogWindow:
    """What was written since: whole lines from `offset`, the first of them number `line`. Nothing before it is read."""
    return _window(open_log(run, name, attempt).piece(offset, WINDOW), line, is_end=True)


def _from_line(log: LogFile, counts: tuple[int, ...], start: int) -> LogWindow:
    ended = [0, *itertools.accumulate(counts)]  # lines that have ended before each piece
    number = max(0, bisect.bisect_left(ended, start - 1) - 1)
    begins = number * PIECE + _after(log.piece(number * PIECE, PIECE).text_bytes, start - 1 - ended[number])
    return _window(log.piece(begins, WINDOW), start)


def _end(log: LogFile, counts: tuple[int, ...]) -> LogWindow:
    skipped = max(0, len(counts) - 2)
    tail = log.piece(skipped * PIECE, 2 * PIECE)
    text = tail.text_bytes
    over = len(text) - WINDOW
    cut = text.find(b"\n", over, len(text) - 1) + 1 or over if over > 0 else 0
    cut += _after(text[cut:], text.count(b"\n", cut) - LINES)
    first = 1 + sum(counts[:skipped]) + text.count(b"\n", 0, cut)
    return _window(LogPiece(text[cut:], tail.offset + cut, tail.next_offset, tail.is_final, tail.size), first, is_end=True)


def _window(piece: LogPiece, first: int, *, is_end: bool = False) -> LogWindow:
    """As many lines of `piece` as are shown at once. Is anything left, the page leads on to it, unless `is_end` says that it asks by itself."""
    text = piece.text_bytes
    if text.count(b"\n") > LINES:
        text = text[: _after(text, LINES)]
    elif not piece.is_final:
        text = _whole(text)
    is_all = len(text) == len(piece.text_bytes)
    return LogWindow(
        text=text,
        first=first,
        next_offset=piece.offset + len(text),
        next_line=first + text.count(b"\n"),
        is_final=piece.is_final and is_all,
        is_end=is_end or (len(piece.text_bytes) < WINDOW and b"\n" not in piece.text_bytes[len(text) :]) or (piece.is_final and is_all),
    )


def _after(text: bytes, lines: int) -> int:
    """Where the first `lines` lines of `text` have ended; its end where there are fewer. By halves, since lines may be a byte long."""
    if lines <= 0:
        return 0
    if text.count(b"\n") < lines:
        return len(text)
    low, high, left = 0, len(text), lines
    while high - low > 1:
        middle = (low + high) // 2
        found = text.count(b"\n", low, middle)
        if found >= left:
            high = middle
        else:
            low, left = middle, left - found
    return high


def _whole(text: bytes) -> bytes:
    """The lines that have an end; a single line longer than a window is shown in parts."""
    return text[: text.rfind(b"\n") + 1] if b"\n" in text or len(text) < WINDOW else text
