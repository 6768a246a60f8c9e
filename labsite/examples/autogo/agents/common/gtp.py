"""The Go Text Protocol, version 2 (Gunnar Farnebäck, draft 2, 2002): how commands, vertices and colours are spelled.

https://www.lysator.liu.se/~gunnar/gtp/gtp2-spec-draft2/gtp2-spec.html
"""

import re
from dataclasses import dataclass

from go_board import BLACK, WHITE

COLUMNS = "ABCDEFGHJ"  # no I
COLOURS = {"b": BLACK, "black": BLACK, "w": WHITE, "white": WHITE}
WORDS = ("black", "white")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_ID = re.compile(r"[0-9]{1,10}")


@dataclass(frozen=True)
class Command:
    """A line as an engine reads it; `number` is its id where it has one."""

    number: str
    name: str
    arguments: tuple[str, ...]


def parse(line: str) -> Command | None:
    """The command of a line; None where it holds none, only space or a comment."""
    words = _CONTROL.sub("", line.replace("\t", " ")).partition("#")[0].split()
    number = words.pop(0) if words and _ID.fullmatch(words[0]) else ""
    return Command(number, words[0] if words else "", tuple(words[1:])) if words or number else None


def vertex_text(size: int, move: int) -> str:
    return "pass" if move == size * size else f"{COLUMNS[move % size]}{move // size + 1}"


def read_vertex(size: int, text: str) -> int:
    """The move of a vertex, a pass too. Raises ValueError."""
    if text.lower() == "pass":
        return size * size
    column, row = COLUMNS.find(text[:1].upper()) if text else -1, text[1:]
    if not row.isascii() or not row.isdigit() or len(row) > 2 or not (0 <= column < size and 1 <= int(row) <= size):
        raise ValueError(f"{text[:20]!r} is no vertex of a board of {size}")
    return (int(row) - 1) * size + column


def read_colour(text: str) -> int:
    """BLACK or WHITE. Raises ValueError."""
    colour = COLOURS.get(text.lower())
    if colour is None:
        raise ValueError(f"{text[:20]!r} is no colour")
    return colour
