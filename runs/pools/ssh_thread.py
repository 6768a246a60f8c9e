"""The background thread in which all SSH connections of this process live; callers are synchronous and wait for it."""

import asyncio
import atexit
import os
import threading
import time
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import asyncssh

from runs.pools.base import NoAnswer, PoolError
from runs.pools.ssh_access import CONNECT_SECONDS, Access, UnreachableError, reason_of
from runs.pools.ssh_connection import CLOSE_SECONDS, Connection

T = TypeVar("T")


WAITING, PATIENCE_SECONDS = 2, 2.0  # a host that lets so many threads of this process wait for so long is asked by no more of them
# Seconds for which a host that let us wait is not asked again, longer each time; at first not at all, since an old connection may be to blame.
PAUSES = (0.0, 15.0, 30.0, 60.0)


@dataclass
class Line:
    """How a host has answered this process lately."""

    waiting: list[float] = field(default_factory=list)  # since when each that asks has been waiting
    failures: int = 0
    until: float = 0.0  # on the monotonic clock: not asked before
    problem: str = ""


class Background:
    """The thread with the event loop, the connections of this process, and how each host has answered."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._connections: dict[Access, Connection] = {}
        self._lines: dict[Access, Line] = {}
        self._guard = threading.Lock()
        self._thread = threading.Thread(target=self.loop.run_forever, name="labsite-ssh", daemon=True)
        self._thread.start()

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run `work` in the thread and wait for it; it is cancelled where the waiting ends early (a time limit of the caller's)."""
        future = asyncio.run_coroutine_threadsafe(work, self.loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    @contextmanager
    def line(self, access: Access, *, is_long: bool = False) -> Iterator[None]:
        """Around each question to a host. Raises NoAnswer at once where it could not be reached a moment ago, or where others wait already:
        what does not answer one does not answer a dozen, and may keep nobody from their pages. `is_long`: one that may take its time, such as
        a large file; that it does says nothing of the host."""
        began = time.monotonic()
        with self._guard:
            line = self._lines.setdefault(access, Line())
            if began < line.until:
                raise NoAnswer(line.problem)
            if not is_long and len(line.waiting) >= WAITING and began - line.waiting[WAITING - 1] > PATIENCE_SECONDS:
                raise NoAnswer(f"{access} has not answered others yet; ask again in a moment")
            if not is_long:
                line.waiting.append(began)
        try:
            yield
        except UnreachableError as error:
            with self._guard:
                line.until = time.monotonic() + PAUSES[min(line.failures, len(PAUSES) - 1)]
                line.failures, line.problem = line.failures + 1, error.reason
            raise
        else:
            line.failures = 0
        finally:
            if not is_long:
                with self._guard:
                    line.waiting.remove(began)

    def connection(self, access: Access) -> Connection:
        with self._guard:
            return self._connections.setdefault(access, Connection(access))

    def close(self) -> None:
        async def end() -> None:
            for connection in self._connections.values():
                await connection.close()

        self.call(end())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(CLOSE_SECONDS)
        if not self.loop.is_running():
            self.loop.close()


_current: list[Background] = []
_of_parents: list[Background] = []  # a forked child has no thread of its parent's; its connections are left alone, not closed
_guard = threading.Lock()


def background() -> Background:
    """The one of this process, made when it is first needed."""
    with _guard:
        if not _current:
            _current.append(Background())
        return _current[0]


def close_all() -> None:
    """Close every connection of this process; the next call opens a new one."""
    with _guard:
        found = _current[:]
        _current.clear()
    for one in found:
        one.close()


def _forget_in_child() -> None:
    global _guard
    _guard = threading.Lock()  # one that was held while forking stays held
    _of_parents.extend(_current)
    _current.clear()


def shown_host_key(host: str, port: int) -> tuple[str, str]:
    """The public key that a host shows now, as a line to pin, and its fingerprint, which a person compares first. Raises PoolError."""

    async def look() -> asyncssh.SSHKey | None:
        async with asyncio.timeout(CONNECT_SECONDS):
            return await asyncssh.get_server_host_key(host, port, config=None)

    try:
        key = background().call(look())
    except (asyncssh.Error, OSError) as error:
        raise PoolError(f"{host}:{port} cannot be reached: {reason_of(error)}") from error
    if key is None:
        raise PoolError(f"{host}:{port} shows no host key")
    return key.export_public_key().decode().strip(), key.get_fingerprint()


os.register_at_fork(after_in_child=_forget_in_child)
atexit.register(close_all)
