"""Columns of a table as a Croissant may name them: from its header and what was read of its rows. Pure.

A reader of Croissant takes a type at its word, so one is given only where every row was read; any other column is text.
"""

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass

from workspaces.text import unprintable

MOST_COLUMNS = 1000
LONGEST_NAME = 200  # characters
TEXT, INTEGER, FLOAT = "sc:Text", "sc:Integer", "sc:Float"
_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")
_OTHER_DELIMITERS = frozenset(";|\t,")


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    data_type: str


def columns_of(text: str, *, delimiter: str, is_cut: bool) -> tuple[Column, ...]:
    """Columns of the table that begins with `text`; none where its first line does not name each of them once, or rows do not have as many cells.
    `is_cut`: it goes on, so that its last line may be half."""
    whole = text.removeprefix("\ufeff")
    if is_cut:
        whole = whole.rpartition("\n")[0]
    rows: list[list[str]] = []
    try:
        rows.extend(row for row in csv.reader(io.StringIO(whole), delimiter=delimiter, strict=True) if any(cell.strip() for cell in row))
    except csv.Error:
        if not is_cut:  # else its last row may end within quotes
            return ()
    if len(rows) < 2 or not _names_columns(rows[0]) or any(len(row) != len(rows[0]) for row in rows):
        return ()
    return tuple(Column(name, TEXT if is_cut else _type_of([row[at] for row in rows[1:]])) for at, name in enumerate(rows[0]))


def _names_columns(names: Sequence[str]) -> bool:
    if len(names) > MOST_COLUMNS or len(set(names)) < len(names) or (len(names) == 1 and _OTHER_DELIMITERS & set(names[0])):
        return False
    return all(
        name == name.strip() and 0 < len(name) <= LONGEST_NAME and unprintable(name) is None and not _NUMBER.fullmatch(name)
        for name in names
    )


def _type_of(cells: Sequence[str]) -> str:
    """Of what stands in a column; an empty cell is a value that is missing."""
    given = [cell for cell in cells if cell]
    if given and all(_WHOLE.fullmatch(cell) for cell in given):
        return INTEGER
    return FLOAT if given and all(_NUMBER.fullmatch(cell) for cell in given) else TEXT
