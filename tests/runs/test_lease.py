"""One worker at a time works on an attempt, and says so; what one says that has been replaced is refused. On real PostgreSQL and pools."""

import socket
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import asyncssh
import pytest
from django.db import OperationalError
from django.utils import timezone

from runs.commands.attempt import FIRST_FENCE, TakenOver, end_attempt, fail_start, mark_running, start_attempt
from runs.jobs import dispatch, lanes, lease
from runs.jobs import watch as watching
from runs.jobs.dispatch import dispatch_run
from runs.jobs.watch import watch_attempts
from runs.models import Attempt, Run, Watch
from runs.pools import ssh_access
from runs.pools.base import Exit, Observation, Status
from runs.pools.local import LocalPool
from runs.pools.ssh_thread import close_all
from tests.factories_people import make_operator
from tests.factories_runs import Laboratory, drive, launch, make_laboratory, watch, watch_only
from tests.runs.attempts import WAITS, let_go, settled, started, until
from workspaces.access import Actor
from workspaces.commands.engine import add_engine
from workspaces.commands.pool import bind_pool
from workspaces.commands.secret import create_secret
from workspaces.models import AuditEvent, Engine, Pool, Secret

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.pool]
SYSTEM = Actor.system(job_id="test")


def claimed(laboratory: Laboratory) -> Attempt:
    """An attempt that nobody has handed to its pool, and nobody holds any more."""
    attempt = start_attempt(actor=SYSTEM, run=launch(laboratory))
    Watch.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    return attempt


def test_a_lease_is_not_renewed_for_work_that_did_not_even_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection of a lane dies just before: nobody else would take the attempt while the lease is renewed."""
    laboratory = make_laboratory()
    with laboratory.opened():
        held = lease.take(claimed(laboratory).pk, is_collecting=False)
        assert held is not None

    def broken(_: object) -> None:
        raise OperationalError

    with monkeypatch.context() as patched:
        patched.setattr("runs.jobs.dispatch.scope.open_workspace", broken)
        with pytest.raises(OperationalError):
            dispatch._hand_over(SYSTEM, held)
    assert held not in lease._heart._held


def test_each_take_has_a_number_of_its_own_and_one_holder() -> None:
    laboratory = make_laboratory()
    with laboratory.opened():
        attempt = claimed(laboratory)
        first = lease.take(attempt.pk, is_collecting=False)
        assert first is not None
        assert lease.take(attempt.pk, is_collecting=False) is None, "somebody works on it"
        assert Watch.objects.get(attempt=attempt).lease_holder == lease.holder()
        lease.release(first)
        second = lease.take(attempt.pk, is_collecting=False)
        assert second is not None
        assert FIRST_FENCE < first.fence < second.fence
        lease.release(first)
        assert lease.take(attempt.pk, is_collecting=False) is None, "one that was replaced let go of another's lease"
        lease.release(second)


def test_what_is_released_while_it_is_renewed_stays_free() -> None:
    laboratory = make_laboratory()
    with laboratory.opened():
        attempt = claimed(laboratory)
        held = lease.take(attempt.pk, is_collecting=False)
        assert held is not None
        lease.renew([held])
        assert lease.take(attempt.pk, is_collecting=False) is None
        lease.release(held)
    lease.renew([held])  # of a list that was made before
    with laboratory.opened():
        after = lease.take(attempt.pk, is_collecting=False)
        assert after is not None
        lease.release(after)


def test_one_that_lives_is_not_replaced_and_one_that_is_silent_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "BEAT_SECONDS", 0.1)
    monkeypatch.setattr(lease, "_heart", lease.Heart())
    monkeypatch.setattr(Watch, "LEASE_SECONDS", 0.5)
    laboratory = make_laboratory()
    with laboratory.opened():
        attempt = claimed(laboratory)
        held = lease.take(attempt.pk, is_collecting=False)
        assert held is not None
        over = time.monotonic() + 1.5
        while time.monotonic() < over:
            assert lease.take(attempt.pk, is_collecting=False) is None, "one that lives was taken for dead"
            time.sleep(0.05)
        lease._heart.drop(held)  # as when its process is killed
        taken: list[lease.Lease] = []

        def is_replaced() -> bool:
            taken.extend(filter(None, [lease.take(attempt.pk, is_collecting=False)]))
            return bool(taken)

        until(is_replaced, "another one takes its place", seconds=5)
        lease.release(taken[0])


def said_late(attempt: Attempt, fence: int) -> dict[str, Any]:
    """What one has to say that worked on the attempt under `fence`."""
    now = time.time()
    ended = Exit(0, None, now - 1, now, "exit", peak_memory_bytes=None, cpu_seconds=None)
    return {
        "running": lambda: mark_running(actor=SYSTEM, attempt=attempt, fence=fence),
        "ended": lambda: end_attempt(actor=SYSTEM, attempt=attempt, fence=fence, ended=ended),
        "not started": lambda: fail_start(actor=SYSTEM, attempt=attempt, fence=fence, reason="no room"),
    }


@pytest.mark.parametrize("what", ["running", "ended", "not started"])
def test_what_a_replaced_holder_says_is_refused_and_changes_nothing(what: str) -> None:
    laboratory = make_laboratory()
    with laboratory.opened():
        attempt = claimed(laboratory)
        held = lease.take(attempt.pk, is_collecting=False)
        assert held is not None
        before = AuditEvent.objects.count()
        with pytest.raises(TakenOver, match="Lease 1 of this attempt is over, lease 2 holds"):
            said_late(attempt, FIRST_FENCE)[what]()
        attempt.refresh_from_db()
        assert (attempt.status, Run.objects.get().status, AuditEvent.objects.count()) == ("created", "starting", before)
        said_late(attempt, held.fence)[what]()
        assert AuditEvent.objects.count() == before + 1
        lease.release(held)


def test_what_a_replaced_watcher_has_seen_is_not_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    laboratory = make_laboratory(code=WAITS)
    run, attempt = started(laboratory)
    watch_only(laboratory)
    now = time.time()

    def stands_still(*_: object) -> Observation:
        """Stopped while it looked, and replaced: what it goes on with is an old answer."""
        Watch.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
        other = lease.take(attempt.pk, is_collecting=False)
        assert other is not None
        ended = Exit(0, None, now - 1, now, "exit", peak_memory_bytes=None, cpu_seconds=None)
        return Observation(Status.EXITED, exit=ended)

    with monkeypatch.context() as patched:
        patched.setattr(LocalPool, "observe", stands_still)
        watch_only(laboratory)
    with laboratory.opened():
        found = Watch.objects.get(attempt=attempt)
        assert (found.observed, Attempt.objects.get().status) == ("running", "running")
        lease.release(lease.Lease(laboratory.workspace.pk, attempt.pk, found.lease_fence))
    let_go(laboratory, run)
    assert drive(laboratory, run).status == "succeeded"
    settled(laboratory)


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> Iterator[Laboratory]:
    """A laboratory with a second pool, `far`, on a host that takes connections and never speaks."""
    monkeypatch.setattr(ssh_access, "CONNECT_SECONDS", 8.0)
    laboratory = make_laboratory(code=WAITS)
    key = asyncssh.generate_private_key("ssh-ed25519")
    with socket.create_server(("127.0.0.1", 0)) as server:
        pinned = key.export_public_key().decode().strip()
        add_engine(
            actor=make_operator(), slug="far", kind=Engine.Kind.SSH, slots=8, host="127.0.0.1", port=server.getsockname()[1],
            host_key=pinned,
        )  # fmt: skip
        with laboratory.opened():
            create_secret(
                actor=laboratory.owner, name="FAR_KEY", kind=Secret.Kind.SSH_KEY, value=key.export_private_key().decode()
            )  # fmt: skip
            bind_pool(
                actor=laboratory.owner, engine="far", slug="far", slots=8, isolation=Pool.Isolation.NONE, login="nobody", folder="runs",
                secret="FAR_KEY",
            )  # fmt: skip
        yield laboratory
    assert lanes.wait(60)  # whoever still waits for it is told now
    close_all()


def test_a_silent_host_keeps_no_other_from_starting_or_being_watched(silent: Laboratory) -> None:
    with silent.opened():
        far = [launch(silent, pool="far") for _ in range(2)]
        near = launch(silent)
    bell = {"workspace_id": silent.workspace.pk.hex, "subject_id": silent.workspace.pk.hex}
    began = time.monotonic()
    dispatch_run(**bell)

    def status(run: Run) -> str:
        with silent.opened():
            return Run.objects.get(pk=run.pk).status

    until(lambda: status(near) == "running", "the run on this machine", seconds=6)
    let_go(silent, near)
    with silent.opened():
        Watch.objects.filter(attempt__run__in=far).update(lease_until=None)  # those that wait for it are watched as well

    def ended() -> bool:
        watch_attempts(**bell)
        with silent.opened():
            return Attempt.objects.get(run=near).ended_at is not None

    until(ended, "its end on record", seconds=6)
    assert time.monotonic() - began < ssh_access.CONNECT_SECONDS, "somebody waited for the host"
    assert [status(run) for run in far] == ["starting", "starting"]


def test_a_start_that_takes_long_is_not_made_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    laboratory = make_laboratory(code=WAITS)
    with laboratory.opened():
        run = launch(laboratory)
    asked: list[str] = []
    submit = LocalPool.submit

    def slowly(self: LocalPool, order: Any) -> None:
        asked.append(order.key)
        time.sleep(1)
        submit(self, order)

    monkeypatch.setattr(LocalPool, "submit", slowly)
    dispatch_run(workspace_id=laboratory.workspace.pk.hex, subject_id=laboratory.workspace.pk.hex)
    for _ in range(3):
        watching.watch_attempts(workspace_id=laboratory.workspace.pk.hex, subject_id=laboratory.workspace.pk.hex)
    assert lanes.wait(30)
    assert len(asked) == 1
    let_go(laboratory, run)
    watch(laboratory)
    assert drive(laboratory, run).status == "succeeded"
    settled(laboratory)
