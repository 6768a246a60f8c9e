"""One worker at a time at something of a workspace: a lock of the database's session, free again with the process that held it.

Nothing rests on it but work that would be done twice: what may be done once is decided by the commands, under locks of their own.
"""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection


@contextmanager
def alone(what: str, workspace_id: uuid.UUID) -> Iterator[None]:
    """Wait until nobody else is at it; nobody else is until the block ends."""
    name = f"{what} {workspace_id.hex}"
    _tell("SELECT pg_advisory_lock(hashtextextended(%s, 0))", name)
    try:
        yield
    finally:
        _tell("SELECT pg_advisory_unlock(hashtextextended(%s, 0))", name)


def _tell(statement: str, name: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, [name])
