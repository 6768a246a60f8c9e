"""Games of Go in the Smart Game Format, FF[4] (https://www.red-bean.com/sgf/): the same if they are under one of the eight symmetries. Pure.

What makes a game is its size, komi, set-up stones and the moves of its main line; players, results and comments may differ.
"""

import re
from collections.abc import Iterator
from typing import BinaryIO

from runs.overlap.values import MIB, WHOLE_FILE, Record, Unreadable, hashed

_TOKEN = re.compile(rb"[();]|[A-Za-z]+|\[(?:[^\]\\]|\\.)*\]|\[", re.DOTALL)
_POINTS = frozenset({"B", "W", "AB", "AW", "AE"})
_LARGEST = 52  # points are letters: a to z, then A to Z

Play = tuple[str, int, int]  # what, column, row; -1 for a pass


def game_records(file: BinaryIO) -> Iterator[Record]:
    """Each game tree of a collection. Raises Unreadable for what is none, and for more than 64 MiB."""
    content = file.read(WHOLE_FILE + 1)
    if len(content) > WHOLE_FILE:
        raise Unreadable(f"it has more than {WHOLE_FILE // MIB} MiB of games")
    depth = start = count = 0
    properties: list[tuple[str, str]] = []
    name, is_main = "", True
    for token in _TOKEN.finditer(content):
        word = token.group()
        if word == b"(":
            if depth == 0:
                start, properties, is_main = token.start(), [], True
            depth += 1
        elif word == b")":
            depth, is_main = depth - 1, False
            if depth < 0:
                raise Unreadable(f"character {token.start() + 1:,}: a game tree ends that has not begun")
            if depth == 0:
                count += 1
                yield _game(properties, start, token.end() - start)
        elif word == b"[":
            raise Unreadable(f"character {token.start() + 1:,}: a value without an end")
        elif depth and is_main and word.startswith(b"["):
            properties.append((name, word[1:-1].decode("latin-1").strip()))
        elif depth and is_main and word != b";":
            name = "".join(filter(str.isupper, word.decode("ascii")))
    if depth or not count:
        raise Unreadable("the text ends within a game tree" if depth else "there is no game tree in it")


def _game(properties: list[tuple[str, str]], place: int, length: int) -> Record:
    first = dict(reversed(properties))  # of each name the first value
    size = int(first["SZ"]) if first.get("SZ", "").isdecimal() and len(first["SZ"]) <= 2 else 19
    head = f"{size} {first.get('KM', '0')} {first.get('HA', '0')}"
    plays = [(name, *_point(value, size)) for name, value in properties if name in _POINTS]
    forms = [_spelled(head, plays, size, symmetry) for symmetry in range(8)]
    return Record(hashed(forms[0]), hashed(min(forms)), place, length)


def _spelled(head: str, plays: list[Play], size: int, symmetry: int) -> bytes:
    spelled = [f"{name}{_turned(column, row, size, symmetry)}" for name, column, row in plays]
    return f"{head} {' '.join(spelled)}".encode()


def _turned(column: int, row: int, size: int, symmetry: int) -> str:
    if column < 0:
        return "pass"
    if symmetry & 1:
        column = size - 1 - column
    if symmetry & 2:
        row = size - 1 - row
    if symmetry & 4:
        column, row = row, column
    return f"{column},{row}"


def _point(value: str, size: int) -> tuple[int, int]:
    """Column and row; a pass for what is no point of the board."""
    if len(value) != 2 or not value.isalpha() or not value.isascii():
        return -1, -1
    column, row = ("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ".index(letter) for letter in value)
    return (column, row) if max(column, row) < min(size, _LARGEST) else (-1, -1)
