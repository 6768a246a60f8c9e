"""JSON documents: the objects of their lists, and what stands around them. Pure.

Records are the entries of each outermost list of objects, the objects around such lists, and objects that stand under a name. They lie within one
another, so a record's place is its number and its length 0.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

from runs.overlap.normal import object_record
from runs.overlap.values import MIB, WHOLE_FILE, Record, Unreadable


def document_records(file: BinaryIO) -> Iterator[Record]:
    """Raises Unreadable for what is no JSON, for more than 64 MiB, and where records are stored as columns or as lists of lists."""
    try:
        for number, found in enumerate(objects_of(file)):
            yield object_record(found, place=number, length=0)
    except RecursionError as fault:
        raise Unreadable("it is nested too deep") from fault


def objects_of(file: BinaryIO) -> Iterator[object]:
    """The records as they stand there, in their order. Raises as `document_records`, and RecursionError for what is nested too deep."""
    content = file.read(WHOLE_FILE + 1)
    if len(content) > WHOLE_FILE:
        raise Unreadable(f"it has more than {WHOLE_FILE // MIB} MiB; as JSON Lines it can be read")
    yield from _records(json.loads(content))


def holds_records(found: object) -> bool:
    """Is it an object with a list of several objects?"""
    lists = [value for value in found.values() if isinstance(value, list)] if isinstance(found, dict) else []
    return any(sum(isinstance(entry, dict) for entry in entries) > 1 for entries in lists)


def _records(found: object) -> Iterator[object]:
    if isinstance(found, list):
        if any(isinstance(entry, list) for entry in found):
            raise Unreadable("it holds lists of lists; as objects with names they can be read")
        yield from found
        return
    if isinstance(found, dict) and len(found) == 1 and isinstance(inner := next(iter(found.values())), dict) and inner:
        yield from _records(inner)
        return
    if isinstance(found, dict):
        if _has_columns(found):
            raise Unreadable("its records are stored as columns; as a list of objects they can be read")
        for value in found.values():
            if isinstance(value, dict) or (isinstance(value, list) and any(isinstance(entry, dict | list) for entry in value)):
                yield from _records(value)
    yield found


def _has_columns(found: Mapping[str, Any]) -> bool:
    """Do two of its values have as many entries as each other, more than one: lists of values, or objects of which each name is a number?"""
    lists = [
        len(value) for value in found.values() if isinstance(value, list) and not any(isinstance(entry, dict | list) for entry in value)
    ]
    numbered = [len(value) for value in found.values() if isinstance(value, dict) and value and all(name.isdecimal() for name in value)]
    return any(len(set(sizes)) < len(sizes) for sizes in ([size for size in lists if size > 1], numbered))
