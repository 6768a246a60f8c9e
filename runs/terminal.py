"""What a run printed, as lines that a page can show: nothing in it may hide, reorder or imitate the page. Pure.

Bytes that are no UTF-8 become U+FFFD; control characters become their pictures (U+2400 ff.), marks that turn the direction of writing are
spelled out; colours (ECMA-48 SGR 30-37, 90-97, 1, 0) are kept as names of styles, other terminal sequences are dropped.
"""

import re
from dataclasses import dataclass

LONGEST = 4_000  # characters of a line that are shown; the raw file has all

_ESCAPE = re.compile(r"\x1b(?:\[([0-9;:?<=>]*)[ -/]*([@-~])|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])")
_BIDI = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_COLOURS = ("gray", "red", "green", "yellow", "blue", "magenta", "cyan", "")  # black would not be seen in a dark page


@dataclass(frozen=True, slots=True)
class Span:
    text: str
    style: str = ""  # "ansi-red ansi-bold"


@dataclass(frozen=True, slots=True)
class LogLine:
    number: int
    spans: tuple[Span, ...]
    cut: int = 0  # characters that are not shown


def lines_of(text: bytes, *, first: int = 1) -> list[LogLine]:
    """Lines of `text`, numbered from `first`. A progress bar that returns to the line's start shows its last state."""
    rows = text.decode("utf-8", errors="replace").split("\n")
    if rows[-1] == "":
        rows.pop()
    return [_line(first + index, row) for index, row in enumerate(rows)]


def _line(number: int, row: str) -> LogLine:
    row = row.removesuffix("\r")
    row = row.rpartition("\r")[2] or row.replace("\r", "")
    cut = max(0, len(row) - LONGEST)
    return LogLine(number=number, spans=tuple(_spans(row[:LONGEST])), cut=cut)


def _spans(row: str) -> list[Span]:
    spans: list[Span] = []
    colour, is_bold, start = "", False, 0
    for found in _ESCAPE.finditer(row):
        _add(spans, row[start : found.start()], colour, is_bold)
        start = found.end()
        if found[2] == "m":
            colour, is_bold = _style(found[1], colour, is_bold)
    _add(spans, row[start:], colour, is_bold)
    return spans


def _add(spans: list[Span], text: str, colour: str, is_bold: bool) -> None:
    if text:
        style = " ".join(name for name in (f"ansi-{colour}" if colour else "", "ansi-bold" if is_bold else "") if name)
        spans.append(Span(plain(text), style))


def _style(codes: str, colour: str, is_bold: bool) -> tuple[str, bool]:
    for code in re.split("[;:]", codes or "0"):
        match int(code) if code.isdigit() and len(code) < 4 else 0:
            case 0:
                colour, is_bold = "", False
            case 1:
                is_bold = True
            case 22:
                is_bold = False
            case 39:
                colour = ""
            case number if 30 <= number <= 37 or 90 <= number <= 97:
                colour = _COLOURS[number % 10]
    return colour, is_bold


def plain(text: str) -> str:
    """The text with what cannot be seen made visible."""
    return _BIDI.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", _CONTROL.sub(_picture, text))


def _picture(found: re.Match[str]) -> str:
    code = ord(found[0])
    return chr(0x2400 + code) if code < 0x20 else "\u2421" if code == 0x7F else f"⟨U+{code:04X}⟩"
