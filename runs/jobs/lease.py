"""Who works on an attempt: one holder at a time, by the database's clock. Each take has a number, and what an older number says is refused.

A holder that lives says so every few seconds, whatever it is doing; one that was killed says nothing, and the next bell takes its place.
"""

import os
import secrets
import socket
import threading
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from itertools import groupby

import structlog
from django.db import connection
from django.db.models import Q
from django.db.models.functions import Now

from runs.models import Watch
from workspaces import prepared, scope

log = structlog.get_logger(__name__)

BEAT_SECONDS = 3.0
HOLD_SECONDS = 3600.0  # one that lives and has got nowhere for so long is beaten for no longer


# Whoever waits for the row looks at it once more as it is then (PostgreSQL's documentation, 13.2.1): one of two takes it.
_TAKE = f"""
    UPDATE {Watch._meta.db_table}
       SET lease_fence = lease_fence + 1, lease_holder = %s, lease_until = statement_timestamp() + make_interval(secs => %s)
     WHERE workspace_id = %s AND attempt_id = %s AND (collecting_since IS NOT NULL) = %s
       AND (lease_until IS NULL OR lease_until < statement_timestamp())
 RETURNING lease_fence"""  # noqa: S608  # a name of ours
_RELEASE = f"""
    UPDATE {Watch._meta.db_table}
       SET lease_until = statement_timestamp() + make_interval(secs => %s), lease_holder = ''
     WHERE workspace_id = %s AND attempt_id = %s AND lease_fence = %s"""  # noqa: S608  # a name of ours; without seconds it is free at once


@dataclass(frozen=True, slots=True)
class Lease:
    """An attempt that this process works on; `fence` is handed to every command that the work ends in."""

    workspace_id: uuid.UUID
    attempt_id: uuid.UUID
    fence: int


def holder() -> str:
    """This process, as it stands in the leases that it holds."""
    return _holder(os.getpid())


@cache
def _holder(pid: int) -> str:
    return f"{socket.gethostname()[:40]}:{pid}:{secrets.token_hex(4)}"  # a process id comes back


def free() -> Q:
    return Q(lease_until=None) | Q(lease_until__lt=Now())


def take(attempt_id: uuid.UUID, *, is_collecting: bool) -> Lease | None:
    """Take the lease of an attempt; None where another one has it, or where it is for collectors since the attempt's end, and not before."""
    with prepared.sent([(_TAKE, [holder(), Watch.LEASE_SECONDS, scope.current_id(), attempt_id, is_collecting])]) as cursor:
        taken = cursor.fetchone()
    return hold(attempt_id, taken[0]) if taken else None


def hold(attempt_id: uuid.UUID, fence: int) -> Lease:
    """Keep a lease that stands in the database under our name, until it is released."""
    lease = Lease(scope.current_id(), attempt_id, fence)
    _heart.add(lease)
    return lease


def release(lease: Lease, pause_seconds: float = 0) -> None:
    """Let go; nobody takes it before `pause_seconds` are over. Where another one has it by now, that one keeps it."""
    _heart.drop(lease)
    with prepared.sent([(_RELEASE, [float(pause_seconds) or None, scope.current_id(), lease.attempt_id, lease.fence])]):
        pass


@contextmanager
def until_done(lease: Lease) -> Iterator[None]:
    """Release it afterwards, however that ended."""
    try:
        yield
    finally:
        release(lease)


@contextmanager
def not_beyond(lease: Lease) -> Iterator[None]:
    """Nobody renews it after this, however that ended: where it could not even be released, it runs out by itself, and another one takes it."""
    try:
        yield
    finally:
        _heart.drop(lease)


def postpone(attempt_id: uuid.UUID, seconds: float) -> None:
    """Nobody takes the lease of an attempt that nobody holds for so long."""
    Watch.objects.filter(free(), attempt=attempt_id).update(lease_until=Now() + timedelta(seconds=seconds))


class Heart:
    """Renews what this process holds. Its thread lives while something is held, and has a connection while it renews."""

    def __init__(self) -> None:
        self._held: dict[Lease, float] = {}
        self._guard = threading.Lock()
        self._beats = False

    def add(self, lease: Lease) -> None:
        with self._guard:
            self._held[lease] = time.monotonic()
            if not self._beats:
                self._beats = True
                threading.Thread(target=self._beat, name="labsite-leases", daemon=True).start()

    def drop(self, lease: Lease) -> None:
        with self._guard:
            self._held.pop(lease, None)

    def _beat(self) -> None:
        while True:
            time.sleep(BEAT_SECONDS)
            with self._guard:
                self._held = {lease: since for lease, since in self._held.items() if time.monotonic() - since < HOLD_SECONDS}
                held = sorted(self._held, key=lambda lease: lease.workspace_id)
                if not held:
                    self._beats = False
                    return
            try:
                renew(held)
            except Exception as fault:  # whatever it is, the next beat comes before the leases are over
                log.warning("leases not renewed", fault=f"{type(fault).__name__}: {fault}")
            finally:
                connection.close()


def renew(held: Iterable[Lease]) -> None:
    """Hold leases, sorted by workspace, for another while. What another one has taken meanwhile is left to it, and what was released since the list
    was made stays free: a released lease keeps its number, and has no holder."""
    for workspace_id, leases in groupby(held, key=lambda lease: lease.workspace_id):
        with scope.open_workspace(workspace_id):
            ours = Q()
            for lease in leases:
                ours |= Q(attempt=lease.attempt_id, lease_fence=lease.fence)
            Watch.objects.filter(ours, lease_holder=holder()).update(lease_until=Now() + timedelta(seconds=Watch.LEASE_SECONDS))


_heart = Heart()
