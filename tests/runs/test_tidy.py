"""What a dispatcher killed while copying leaves is gone after the next tidy; the clock asks for one again where its bell was left out."""

import errno
import os
import signal
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import django_rq
import pytest
from django.conf import settings
from rq.timeouts import JobTimeoutException

from labsite.clock import Clock
from labsite.doctor import SITE_CHECKS
from runs import queue
from runs.commands.attempt import start_attempt
from runs.jobs.tidy import tidy_workspace
from runs.models import Attempt
from runs.place import place_of
from runs.pools import local
from runs.pools.base import Order, PoolError
from runs.pools.isolation import Isolation
from runs.pools.local import LocalPool
from runs.queries.order import order_of
from tests.factories_runs import Laboratory, launch, make_laboratory
from workspaces.access import Actor
from workspaces.models import Recount

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.pool]

HALF = b"half of what was to be copied"


@pytest.fixture
def laboratory() -> Laboratory:
    return make_laboratory()


def tidy(laboratory: Laboratory) -> None:
    tidy_workspace(workspace_id=laboratory.workspace.pk.hex, subject_id=laboratory.workspace.pk.hex)


def rooms(laboratory: Laboratory) -> list[Path]:
    """What lies beside the run folders of the workspace."""
    return sorted((Path(settings.LABSITE_RUNS) / "runs" / laboratory.workspace.pk.hex).glob(".*"))


def killed_while_copying(place: LocalPool, order: Order, patch: pytest.MonkeyPatch) -> None:
    """A process of its own stages the attempt and is killed in the midst of it, as a supervisor or a full memory does."""

    def copies_half(draft: Path, *_: object) -> None:
        (draft / "code").mkdir()
        (draft / "code/x").write_bytes(HALF)
        os.kill(os.getpid(), signal.SIGKILL)

    child = os.fork()
    if child == 0:
        try:
            patch.setattr(local, "stage", copies_half)
            place.submit(order)
        finally:
            os._exit(1)  # not reached: nothing of the test's own process is cleaned up here
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def age(folder: Path, hours: float) -> None:
    then = datetime.now(UTC).timestamp() - hours * 3600
    for place, _, names in os.walk(folder):
        for path in (place, *(f"{place}/{name}" for name in names)):
            os.utime(path, (then, then))


def half_staged(laboratory: Laboratory, patch: pytest.MonkeyPatch) -> Path:
    with laboratory.opened():
        attempt = start_attempt(actor=Actor.system(job_id="test"), run=launch(laboratory))
        attempt = Attempt.objects.select_related("pool__engine", "run").get(pk=attempt.pk)
        place, order = place_of(attempt), order_of(attempt)
    assert isinstance(place, LocalPool)
    killed_while_copying(place, order, patch)
    (left,) = rooms(laboratory)
    assert (left / "code/x").read_bytes() == HALF
    return left


def test_a_dispatcher_killed_while_copying_leaves_nothing_after_the_next_tidy(
    laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = half_staged(laboratory, monkeypatch)
    age(left, hours=1.5)
    (left.parent / ".removed-1").mkdir()
    age(left.parent / ".removed-1", hours=1.5)
    tidy(laboratory)
    assert rooms(laboratory) == []


def test_what_is_still_being_copied_stays(laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder was made long ago; a byte of it came just now."""
    left = half_staged(laboratory, monkeypatch)
    age(left, hours=5)
    (left / "code/x").write_bytes(HALF)
    tidy(laboratory)
    assert rooms(laboratory) == [left]
    age(left, hours=5)
    assert LocalPool(left.parents[2], Isolation.NONE, [], None).tidy() >= 1


def test_an_engine_is_tidied_once_an_hour_and_one_that_fails_stops_nothing(laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []

    def fails(self: LocalPool, *, older_than_seconds: float = 3600) -> int:
        asked.append(older_than_seconds)
        raise PoolError("it does not answer")

    monkeypatch.setattr(LocalPool, "tidy", fails)
    tidy(laboratory)
    tidy(laboratory)
    assert asked == [3600]


def test_a_step_that_fails_keeps_no_other_from_its_turn(laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch) -> None:
    def full() -> None:
        raise OSError(errno.EIO, "the disk")

    with laboratory.opened():
        launch(laboratory)
    monkeypatch.setattr("runs.jobs.tidy.tidy_uploads", full)
    tidy(laboratory)
    with laboratory.opened():
        assert Recount.objects.get().is_right, "the ledger is counted last, and is counted"


def test_a_worker_whose_time_is_over_ends(laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch) -> None:
    def too_long() -> None:
        raise JobTimeoutException("too long")

    monkeypatch.setattr("runs.jobs.tidy.tidy_uploads", too_long)
    with pytest.raises(JobTimeoutException):
        tidy(laboratory)


def test_doctor_names_what_was_left_and_not_removed(laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch) -> None:
    def said() -> str:
        return " ".join(SITE_CHECKS["run folder"]())

    left = half_staged(laboratory, monkeypatch)
    age(left, hours=1.5)
    assert "half staged" not in said()
    age(left, hours=3)
    assert "half staged or half removed" in said()
    tidy(laboratory)
    assert "half staged" not in said()


def test_a_bell_left_out_for_a_deep_queue_is_due_again_in_the_next_second(laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in settings.QUEUES:
        django_rq.get_queue(name).empty()  # type: ignore[no-untyped-call]  # rq carries no types here
    clock, now, key = Clock(), datetime.now(UTC), laboratory.workspace.pk
    depths: dict[str, Any] = queue.depths()
    with monkeypatch.context() as patched:
        patched.setattr(queue, "depths", lambda: dict.fromkeys(depths, 1000))
        assert clock.tick(now) == []
    assert ("tidy_workspace", key) in clock.tick(now + timedelta(seconds=1))
    assert ("tidy_workspace", key) not in clock.tick(now + timedelta(seconds=30))
    assert ("tidy_workspace", key) in clock.tick(now + timedelta(seconds=62))
