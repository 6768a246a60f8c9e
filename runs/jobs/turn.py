"""One worker at a time at something of a workspace: a lock of the database's session, free again with the process that held it.

Nothing rests on it but work that would be done twice: what may be done once is decided by the commands, under locks of their own.
"""

import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection

PATIENCE_SECONDS = 2.0  # whoever stands still with the lock keeps nobody for longer
LOOK_SECONDS = 0.02


@contextmanager
def alone(what: str, workspace_id: uuid.UUID) -> Iterator[None]:
    """Wait until nobody else is at it, for PATIENCE_SECONDS at most; nobody else is until the block ends."""
    name = f"{what} {workspace_id.hex}"
    until = time.monotonic() + PATIENCE_SECONDS
    while not (has_it := _ask("SELECT pg_try_advisory_lock(hashtextextended(%s, 0))", name)) and time.monotonic() < until:
        time.sleep(LOOK_SECONDS)
    try:
        yield
    finally:
        if has_it:
            _ask("SELECT pg_advisory_unlock(hashtextextended(%s, 0))", name)


def _ask(statement: str, name: str) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(statement, [name])
        return bool(cursor.fetchone()[0])
