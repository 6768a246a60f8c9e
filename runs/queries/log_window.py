"""The part of a log that a page shows: its end, or the lines around one that was linked to, numbered from the log's first line."""

from dataclasses import dataclass

from runs.models import Attempt, Run
from runs.queries.log import read_log

WINDOW = 196_608  # bytes shown at once
PIECE = 1_048_576
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
    """The log's end, or with `line` the lines from a little before it."""
    kept, first, offset = b"", 1, 0
    start = max(1, line - LINES_BEFORE) if line else None
    while True:
        piece = read_log(run, name, offset=offset, limit=PIECE, attempt=attempt)
        kept, offset = kept + piece.text_bytes, piece.next_offset
        kept, first = _without_head(kept, first, start)
        if not piece.text_bytes or piece.is_final or (start and first >= start and len(kept) >= WINDOW):
            break
    text = kept[:WINDOW] if start else kept
    is_end = len(text) == len(kept)
    is_final = piece.is_final and is_end
    text = text if is_final else _whole(text)
    return LogWindow(
        text=text,
        first=first,
        next_offset=offset - len(kept) + len(text),
        next_line=first + text.count(b"\n"),
        is_final=is_final,
        is_end=is_end,
    )


def log_after(run: Run, name: str, *, attempt: Attempt | None, offset: int, line: int) -> LogWindow:
    """What was written since: whole lines from `offset`, the first of them number `line`."""
    piece = read_log(run, name, offset=offset, limit=WINDOW, attempt=attempt)
    text = piece.text_bytes if piece.is_final else _whole(piece.text_bytes)
    is_final = piece.is_final and piece.next_offset == offset + len(text)
    return LogWindow(text, line, offset + len(text), line + text.count(b"\n"), is_final=is_final, is_end=True)


def _without_head(kept: bytes, first: int, start: int | None) -> tuple[bytes, int]:
    """Drop lines before `start`, or all but the last window."""
    if start is None:
        if len(kept) <= WINDOW:
            return kept, first
        cut = kept.find(b"\n", len(kept) - WINDOW) + 1 or len(kept) - WINDOW
        return kept[cut:], first + kept.count(b"\n", 0, cut)
    while first < start:
        cut = kept.find(b"\n") + 1
        if not cut:
            break
        kept, first = kept[cut:], first + 1
    return kept, first


def _whole(text: bytes) -> bytes:
    """The lines that have an end; a single line longer than a window is shown in parts."""
    return text[: text.rfind(b"\n") + 1] if b"\n" in text or len(text) < WINDOW else text
