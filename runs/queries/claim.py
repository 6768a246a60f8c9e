"""Who of several dispatchers claims a run: asked without waiting."""

import uuid

from django.db import connection

CLAIMS = 0x6C6162  # the first of two numbers of a claim's lock, which no other advisory lock of labsite has


def is_first(run_id: uuid.UUID) -> bool:
    """Does nobody else claim this run at this moment? Ours until the transaction ends.

    Asked before the ledger's lock is waited for: of dispatchers that go through a queue side by side, each would wait for every start of the others,
    only to find that it is made. Two runs may share a number: one of them then starts a ring later.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s, %s)", [CLAIMS, run_id.int & 0x7FFFFFFF])
        return bool(cursor.fetchone()[0])
