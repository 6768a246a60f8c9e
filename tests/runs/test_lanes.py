"""A lane's threads look at their connection from time to time, and whenever a query has failed: not before each piece of work."""

import threading
import time

import pytest
from django.db import DatabaseError, close_old_connections, connection

from runs.jobs import lanes
from runs.jobs.lanes import Lane

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_connection_is_looked_at_again_once_a_query_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[str] = []
    answers: list[int] = []
    look = close_old_connections

    def counted() -> None:
        looks.append(threading.current_thread().name)
        look()

    def asks() -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
            answers.append(cursor.fetchone()[0])

    def loses_it() -> None:
        """As when the database is started anew; whoever works in a lane keeps its faults to itself."""
        connection.connection.close()
        with pytest.raises(DatabaseError):
            asks()

    monkeypatch.setattr(lanes, "close_old_connections", counted)
    monkeypatch.setattr(lanes, "LOOKED_AT_SECONDS", 3600.0)
    monkeypatch.setattr(lanes, "IDLE_SECONDS", 0.1)
    lane = Lane("test", 1)
    for number, work in enumerate((asks, asks, loses_it, asks, asks)):
        lane.put(number, work)
    assert lane.wait(time.monotonic() + 30)
    assert answers == [1, 1, 1, 1]
    assert len(looks) == 2
