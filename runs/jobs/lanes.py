"""Work that waits for engines: each engine has lanes of its own, so that a host which does not answer keeps nobody waiting but who wants it.

A job puts its work into a lane and is over; the worker goes on with the next bell at once. Nothing is lost with a worker that dies: what it
held is under a lease (`runs/jobs/lease.py`), and the clock rings again.
"""

import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Hashable
from enum import StrEnum

import structlog
from django.db import close_old_connections, connection

log = structlog.get_logger(__name__)


class Work(StrEnum):
    """What is done with attempts. Each has its own lanes: staging a large input keeps nobody from being watched."""

    START = "start"
    WATCH = "watch"
    COLLECT = "collect"
    ORPHANS = "orphans"


LOOKED_AT_SECONDS = 1.0  # so long a thread takes its connection for a live one
IDLE_SECONDS = 20.0  # so long a thread waits for more, with its connection
THREADS = {Work.START: 4, Work.WATCH: 2, Work.COLLECT: 2, Work.ORPHANS: 1}  # of one engine in one worker


class Lane:
    """Work of one kind on one engine, done by a few threads, which end where nothing has come for a while."""

    def __init__(self, name: str, threads: int) -> None:
        self._name, self._most = name, threads
        self._waiting: deque[tuple[Hashable, Callable[[], None]]] = deque()
        self._changed = threading.Condition()
        self._threads = self._idle = 0

    def put(self, subject: Hashable, work: Callable[[], None]) -> None:
        """Do it soon; where the same waits already, that is enough."""
        with self._changed:
            if any(subject == other for other, _ in self._waiting):
                return
            self._waiting.append((subject, work))
            if len(self._waiting) > self._idle and self._threads < self._most:
                self._start_thread()
            self._changed.notify_all()

    def wait(self, deadline: float) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: self._threads == self._idle and not self._waiting, max(0.0, deadline - time.monotonic()))

    def _start_thread(self) -> None:
        self._threads += 1
        threading.Thread(target=self._go_on, name=f"labsite-{self._name}", daemon=True).start()

    def _go_on(self) -> None:
        looked_at = float("-inf")
        try:
            while work := self._next():
                # A look at the connection is a round trip: work by the dozen shares one, unless a query has failed since.
                if connection.errors_occurred or time.monotonic() - looked_at > LOOKED_AT_SECONDS:
                    close_old_connections()
                    looked_at = time.monotonic()
                try:
                    work()
                except Exception:
                    log.exception("work in a lane failed", lane=self._name)
        finally:
            connection.close()
            with self._changed:
                self._threads -= 1
                if self._waiting and self._threads < self._most:
                    self._start_thread()
                self._changed.notify_all()

    def _next(self) -> Callable[[], None] | None:
        """The next that waits, or comes while we wait; None where nothing comes."""
        with self._changed:
            if not self._waiting:
                self._idle += 1
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._waiting, IDLE_SECONDS)
                self._idle -= 1
            return self._waiting.popleft()[1] if self._waiting else None


_lanes: dict[tuple[Work, uuid.UUID], Lane] = {}
_guard = threading.Lock()


def put(work: Work, engine_id: uuid.UUID, subject: Hashable, act: Callable[[], None]) -> None:
    """Put `act` into the engine's lane for such work. `act` opens its own scope; what it raises is logged."""
    with _guard:
        lane = _lanes.setdefault((work, engine_id), Lane(f"{work}-{engine_id.hex[:8]}", THREADS[work]))
    lane.put(subject, act)


def wait(seconds: float, *works: Work) -> bool:
    """Wait until nothing waits or is done in this process, of all work or of `works`; False where that takes longer."""
    deadline = time.monotonic() + seconds
    while True:
        with _guard:
            lanes = [lane for (work, _), lane in _lanes.items() if not works or work in works]
        if not all(lane.wait(deadline) for lane in lanes):
            return False
        if all(lane.wait(0) for lane in lanes):  # work of one lane may put more into another
            return True
