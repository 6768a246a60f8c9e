"""Normal forms of records: what makes two of them the same, exactly or nearly (contracts.md K). Pure.

A record of a table and an object of JSON have one form: its names in their order, each with its value. Numbers are compared as numbers: 1.0 is 1.
Nearly the same are records whose numbers are equal after rounding to four significant digits, and prose whose shingles are (texts.py). Columns that
only count or name a record are left out of that, where at least four others say something: whoever copies a record often numbers it anew. Rows
with at least eight measurements are nearly the same, too, where those are so alike as prose is: somebody has added a column, or taken one away.
"""

import json
import math
import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any

from runs.overlap.values import Record, hashed

SHORTEST_PROSE = 20  # characters of a value; shorter ones are labels and names, which many records share
_NUMBER = re.compile(r"[+-]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")
_NO_NUMBERS = frozenset({"nan", "inf", "+inf", "-inf", "infinity", "+infinity", "-infinity"})
_NAMES_A_RECORD = re.compile(r"(?:.*[_ .-])?(?:id|uuid|guid|index|idx)|unnamed: 0|", re.IGNORECASE)
_FEWEST_OTHERS = 4
_MEASURED = re.compile(r"-?[0-9]\.[0-9](?!00e)[0-9]{2}e[+-][0-9]+")  # a rounded number of three significant digits or four
_FEWEST_MEASURED = 8
_BETWEEN, _WITHIN = "\x1f", "\x1e"


def text_record(text: str, *, place: int, length: int) -> Record:
    """A line of text: the same if its characters are, whatever stands between its words."""
    exact = hashed(" ".join(unicodedata.normalize("NFC", text).split()).encode("utf-8", "backslashreplace"))
    return Record(exact, exact, place, length, text if _is_prose(text) else "")


def row_record(names: Sequence[str], values: Iterable[str], *, place: int, length: int) -> Record:
    """A row of a table; `names` and `values` in the same order, which is that of the names."""
    forms, prose = [], []
    for name, value in zip(names, values, strict=True):
        same, nearly = cell_forms(value)
        forms.append((name, same, nearly))
        if _is_prose(same):
            prose.append(same)
    return _record(forms, prose, place, length)


def object_record(found: object, *, place: int, length: int) -> Record:
    """A JSON value: an object as a row, anything else as a row of one value without a name; one around nothing but another object is that object.
    Raises RecursionError for one that is nested too deep."""
    fields = fields_of(found)
    forms, prose = [], []
    for name in sorted(fields):
        value = fields[name]
        forms.append((name, *(cell_forms(value) if isinstance(value, str) else (_json(value, nearly=False), _json(value, nearly=True)))))
        prose += [text for text in _texts(value) if _is_prose(text)]
    return _record(forms, prose, place, length)


def fields_of(found: object) -> dict[str, Any]:
    """Names and values of a JSON value, as it is compared."""
    while isinstance(found, dict) and len(found) == 1 and isinstance(inner := next(iter(found.values())), dict) and inner:
        found = inner
    return found if isinstance(found, dict) else {"": found}


def cell_forms(cell: str) -> tuple[str, str]:
    """A value as it is compared exactly, and nearly."""
    text = cell.strip()
    if _NUMBER.fullmatch(text):
        return number_forms(float(text), text)
    lower = text.lower()
    return (lower, lower) if lower in _NO_NUMBERS else (text, text)


def number_forms(value: float, text: str) -> tuple[str, str]:
    """A whole number of up to 15 digits exactly, any other as the nearest double; and rounded to four significant digits."""
    if not math.isfinite(value):
        return str(value), str(value)
    if value == 0:
        return "0", "0"
    is_whole = value.is_integer() and abs(value) < 1e15
    same = str(int(value)) if is_whole else text if text.lstrip("+-").isdigit() else repr(value)
    return same, f"{value:.3e}"


def is_number(cell: str) -> bool:
    text = cell.strip()
    return _NUMBER.fullmatch(text) is not None or text.lower() in _NO_NUMBERS


def _record(forms: list[tuple[str, str, str]], prose: list[str], place: int, length: int) -> Record:
    """A record of (name, exact form, near form)."""
    telling = [form for form in forms if form[2] and not _NAMES_A_RECORD.fullmatch(form[0])]
    compared = telling if len(telling) >= _FEWEST_OTHERS else forms
    exact = hashed(_BETWEEN.join([f"{name}{_WITHIN}{same}" for name, same, _ in forms]).encode("utf-8", "backslashreplace"))
    near = hashed(_BETWEEN.join([f"{name}{_WITHIN}{nearly}" for name, _, nearly in compared]).encode("utf-8", "backslashreplace"))
    measured = tuple(f"{name}{_WITHIN}{nearly}" for name, _, nearly in telling if _MEASURED.fullmatch(nearly))
    return Record(exact, near, place, length, "\n".join(prose), measured if len(measured) >= _FEWEST_MEASURED else ())


def _json(value: object, *, nearly: bool) -> str:
    if value is None:
        return ""  # as an empty cell of a table
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return number_forms(value, repr(value))[nearly]
    if isinstance(value, int):
        return number_forms(float(value), str(value))[nearly] if abs(value) < 10**300 else str(value)
    if isinstance(value, list):
        return f"[{','.join(_json(entry, nearly=nearly) for entry in value)}]"
    if isinstance(value, dict):
        return f"{{{','.join(f'{json.dumps(name)}:{_json(value[name], nearly=nearly)}' for name in sorted(value))}}}"
    return json.dumps(value)


def _texts(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, list):
        return [text for entry in value for text in _texts(entry)]
    if isinstance(value, dict):
        return [text for name in sorted(value) for text in _texts(value[name])]
    return []


def _is_prose(text: str) -> bool:
    """Words rather than a label: not all scripts have spaces."""
    return len(text) >= SHORTEST_PROSE and (" " in text or not text.isascii())
