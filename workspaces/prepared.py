"""Statements whose text is always the same are analysed and planned once in a connection, not each time they are sent.

PostgreSQL spends about as long on finding out what a short statement means and how to answer it as on answering. Django's cursors put the
values into the text, so that each is a new statement to it. Here the text is given to PREPARE once and later named by EXECUTE, still through
Django's cursor: several go in one round trip, and each is wrapped, counted and told of its errors as any other.
"""

import itertools
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any
from weakref import WeakKeyDictionary

from django.db import connection

# How PostgreSQL has these where the statement does not say it, as `now() - %s` does not. Whole numbers may belong to a column of any size.
TYPES = {uuid.UUID: "uuid", datetime: "timestamptz", bool: "bool", int: "bigint"}
LARGEST = 2**63

Statement = tuple[str, tuple[str, ...]]  # its text, and the types of its values

_numbers = itertools.count()  # a name is given once: to one that was cut off while it was prepared, never again
_prepared: "WeakKeyDictionary[Any, dict[Statement, str]]" = WeakKeyDictionary()  # by connection: what it has lives as long


@contextmanager
def sent(statements: Sequence[tuple[str, Sequence[Any]]]) -> Iterator[Any]:
    """The cursor, once it has sent these in one round trip: it stands at the answer of the first, `nextset` goes to the next.

    The texts have a place for each value, as a cursor wants them, and are kept for good: nothing that differs from one request to the next may
    stand in them. Where statements are watched they are sent as they are.
    """
    with connection.cursor() as cursor:
        if connection.queries_logged:
            texts = [sql for sql, _ in statements]
        else:
            texts = [_execute(sql, values) for sql, values in statements]
        cursor.execute("; ".join(texts), [value for _, values in statements for value in values] or None)
        yield cursor


def _execute(sql: str, values: Sequence[Any]) -> str:
    if sql.startswith("SET "):
        return sql  # there is nothing to plan
    statement = sql, tuple(_type_of(value) for value in values)
    known = _prepared.setdefault(connection.connection, {})
    name = known.get(statement)
    if name is None:
        name = known[statement] = _prepare(*statement)
    return f"EXECUTE {name}({', '.join(['%s'] * len(values))})" if values else f"EXECUTE {name}"


def _prepare(sql: str, types: tuple[str, ...]) -> str:
    """Under a name of its own. Not through Django's cursor: it is no statement of whoever asks, and is sent in one connection and not in another."""
    connection.validate_no_broken_transaction()
    name = f"kept_{next(_numbers)}"
    text = sql % tuple(f"${place}" for place in range(1, len(types) + 1))
    of = f" ({', '.join(types)})" if types else ""
    with connection.wrap_database_errors, connection.connection.cursor() as cursor:
        cursor.execute(f"PREPARE {name}{of} AS {text}")
    return name


def _type_of(value: Any) -> str:
    if isinstance(value, list):
        kinds = {_type_of(one) for one in value}
        kind = kinds.pop() if len(kinds) == 1 else "unknown"
        return kind if kind == "unknown" else f"{kind}[]"
    kind = TYPES.get(type(value), "unknown")
    return "numeric" if kind == "bigint" and not -LARGEST <= value < LARGEST else kind
