"""Games as text in the Smart Game Format, FF[4] (https://www.red-bean.com/sgf/): written one game a tree, read along the main line.

Only what a game record of this laboratory needs is kept of a text that is read: size, komi, players, result, comment, moves. Set-up stones,
handicap and moves out of turn are refused, since such a game would not be the same game without them. Points as in go_board.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

from go_board import LARGEST, SMALLEST

MAX_CHARACTERS = 64 * 1024 * 1024
REFUSED = {"AB": "set-up stones", "AW": "set-up stones", "AE": "set-up stones", "PL": "a player set to move"}
_TOKEN = re.compile(r"\s*(?:([();])|([A-Za-z]+)|(\[))")
_VALUE = re.compile(r"(?:[^\]\\]|\\.)*\]", re.DOTALL)


class SgfError(ValueError):
    """The text is no such game record; the message says what is wrong, and where."""


@dataclass(frozen=True)
class Record:
    """A game as it is kept: `result` in SGF's words (`B+3.5`, `0`, `Void`, `?`)."""

    size: int
    komi: float
    moves: tuple[int, ...]
    result: str
    black: str = ""
    white: str = ""
    comment: str = ""


def result_of(score: float) -> str:
    """Black's lead in SGF's words. A draw is `0`."""
    return "0" if score == 0 else f"{'B' if score > 0 else 'W'}+{abs(score):g}"


def write(record: Record) -> str:
    """The game as one tree, ending in a newline."""
    names = "".join(f"{key}[{_escaped(text)}]" for key, text in (("PB", record.black), ("PW", record.white)) if text)
    head = f"(;FF[4]GM[1]CA[UTF-8]AP[autogo]RU[Area scoring, positional superko, no suicide]SZ[{record.size}]KM[{record.komi:g}]"
    comment = f"C[{_escaped(record.comment)}]" if record.comment else ""
    nodes = [f";{'BW'[turn % 2]}[{_vertex(record.size, move)}]" for turn, move in enumerate(record.moves)]
    lines = ["".join(nodes[start : start + 12]) for start in range(0, len(nodes), 12)]
    return "\n".join([f"{head}{names}RE[{_escaped(record.result)}]{comment}", *lines]) + ")\n"


def read(text: str) -> list[Record]:
    """All games of a text, of each its main line. Raises SgfError."""
    if len(text) > MAX_CHARACTERS:
        raise SgfError(f"the text has {len(text):,} characters; {MAX_CHARACTERS:,} are read at most")
    return [_record(nodes) for nodes in _main_lines(text)]


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("]", "\\]")


def _vertex(size: int, move: int) -> str:
    """Columns from the left, rows from above, as letters; nothing for a pass."""
    if move == size * size:
        return ""
    return chr(97 + move % size) + chr(97 + size - 1 - move // size)


def _main_lines(text: str) -> Iterator[list[dict[str, list[str]]]]:
    """Of each game tree the nodes of its first branch, each as its properties."""
    position, depth, ended_branch = 0, 0, False
    nodes: list[dict[str, list[str]]] = []
    values: list[str] | None = None
    while found := _TOKEN.match(text, position):
        mark, name, opening = found.groups()
        if not mark and not nodes and not ended_branch:
            raise SgfError(f"a property outside a node, at character {found.start() + 1}")
        if opening:
            closing = _VALUE.match(text, found.end())
            if closing is None or values is None:
                raise SgfError(f"a value without {'an end' if closing is None else 'a property'}, at character {found.end()}")
            values.append(_unescaped(closing.group()[:-1]))
            position = closing.end()
            continue
        position = found.end()
        values = None
        if name:
            # Lower-case letters were allowed up to FF[3], and mean nothing. What stands behind the main line is read and dropped.
            values = [] if ended_branch else nodes[-1].setdefault("".join(filter(str.isupper, name)), [])
        elif mark == "(":
            depth += 1
        elif not depth:
            raise SgfError(f"{mark} outside a game tree, at character {found.end()}")
        elif mark == ";":
            if not ended_branch:
                nodes.append({})
        else:
            depth, ended_branch = depth - 1, True
            if not depth:
                yield nodes
                nodes, ended_branch = [], False
    if depth:
        raise SgfError("the text ends within a game tree")
    if text[position:].strip():
        raise SgfError(f"neither a game tree nor a space, at character {position + 1}")


def _unescaped(value: str) -> str:
    """SimpleText and Text alike, near enough for names and comments: an escaped line end goes, any other escaped character stays."""
    return re.sub(r"\\(\r\n|\n\r|.)", lambda found: "" if found.group(1)[0] in "\r\n" else found.group(1), value, flags=re.DOTALL)


def _record(nodes: list[dict[str, list[str]]]) -> Record:
    if not nodes:
        raise SgfError("a game tree without a node")
    root = nodes[0]

    def text(key: str, default: str = "") -> str:
        return (root.get(key) or [default])[0]

    if text("GM", "1").strip() != "1":
        raise SgfError(f"GM[{text('GM')}] is not Go")
    size = _size(text("SZ", "19"))
    moves: list[int] = []
    for node in nodes:
        for key, what in REFUSED.items():
            if key in node:
                raise SgfError(f"the game has {what} ({key})")
        for key in ("B", "W"):
            for value in node.get(key, []):
                if key != "BW"[len(moves) % 2]:
                    raise SgfError(f"move {len(moves) + 1} is out of turn")
                moves.append(_point(size, value.strip(), len(moves) + 1))
    return Record(size, _komi(text("KM", "0")), tuple(moves), text("RE", "?"), text("PB"), text("PW"), text("C"))


def _size(text: str) -> int:
    if not text.strip().isascii() or not text.strip().isdigit() or not SMALLEST <= int(text) <= LARGEST:
        raise SgfError(f"SZ[{text[:20]}] is not a board of {SMALLEST} to {LARGEST}")
    return int(text)


def _komi(text: str) -> float:
    try:
        komi = float(text)
    except ValueError:
        komi = math.nan
    if not math.isfinite(komi):
        raise SgfError(f"KM[{text[:20]}] is not a komi")
    return komi


def _point(size: int, value: str, number: int) -> int:
    if value in ("", "tt"):
        return size * size
    column, row = (ord(letter) - 97 for letter in value) if len(value) == 2 else (-1, -1)
    if not (0 <= column < size and 0 <= row < size):
        raise SgfError(f"move {number}, [{value[:20]}], is not on the board")
    return (size - 1 - row) * size + column
