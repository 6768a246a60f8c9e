"""What only the owner of the database can do: read the catalogue freely, and tamper with the record."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from django.conf import settings
from django.db import connection


@contextmanager
def owner_connection() -> "Iterator[psycopg.Connection[tuple[Any, ...]]]":
    """A connection of its own to the test database, as the owner; rolled back at the end unless committed."""
    parameters = {
        **connection.get_connection_params(),
        "user": settings.OWNER_DATABASE["USER"],
        "password": settings.OWNER_DATABASE["PASSWORD"],
    }
    plain = {key: parameters[key] for key in ("dbname", "user", "password", "host", "port") if parameters.get(key)}
    with psycopg.connect(**plain) as opened:
        try:
            yield opened
        finally:
            if not opened.closed:
                opened.rollback()


def tamper(statement: str, *values: Any) -> int:
    """Run a statement as the owner and commit; the number of rows it touched."""
    with owner_connection() as opened:
        touched = opened.execute(statement, values).rowcount
        opened.commit()
        return touched
