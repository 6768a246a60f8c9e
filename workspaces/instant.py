"""Reading several things as they were in one instant (PostgreSQL: transaction isolation, repeatable read)."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection, transaction


@contextmanager
def one_instant() -> Iterator[None]:
    """Every statement within sees what was there at the first, and none can write, not even by mistake. Within a transaction it is that one's
    business what is seen: a command reads what it has locked."""
    if connection.in_atomic_block:
        yield
        return
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        yield
