"""A pool that can neither start an attempt nor bar its name, or a store that is away: the runs wait, and their pages say why."""

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from runs.jobs import dispatch as dispatching
from runs.lifecycle import RunStatus
from runs.models import Run, Watch
from runs.pools import staging
from runs.pools.base import NoAnswer, PoolError
from runs.pools.local import LocalPool
from runs.pools.travelling import bring
from tests.factories_pages import client_of
from tests.factories_runs import Laboratory, dispatch, drive, launch, make_laboratory, watch
from tests.runs.attempts import settled
from workspaces.local_store import LocalStore, StoreFull
from workspaces.models import Blob

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.pool]
FULL = "the disk of the host is full"


@pytest.mark.parametrize("error", [PoolError(FULL), NoAnswer(FULL)])
def test_the_page_says_what_the_pool_said_last_until_the_run_starts(monkeypatch: pytest.MonkeyPatch, error: PoolError) -> None:
    laboratory = make_laboratory()
    client = client_of(laboratory.owner)
    with laboratory.opened():
        run = launch(laboratory)
    address = f"/workspaces/lab/runs/{run.public_id}/"

    def refuse(*_: object, **__: object) -> None:
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(LocalPool, "submit", refuse)
        patched.setattr(LocalPool, "cancel", refuse)
        dispatch(laboratory)
        for _ in range(3):
            watch(laboratory)
            with laboratory.opened():
                assert Run.objects.get().status == RunStatus.STARTING
                assert Watch.objects.get().observed == "missing"
            assert f"{FULL}.</bdi> It is tried again." in client.get(address).content.decode()
    assert drive(laboratory, run).status == RunStatus.SUCCEEDED
    with laboratory.opened():
        assert FULL not in Watch.objects.get().observed_reason
    assert FULL not in client.get(address).content.decode()
    settled(laboratory)


# --- What passes: it fails no run of the queue, each of which would find the same -----------------------------------------------------------


Fault = Callable[[pytest.MonkeyPatch], AbstractContextManager[None]]


@contextmanager
def away(patched: pytest.MonkeyPatch) -> Iterator[None]:
    """The disk of the store is not mounted. (Its folder is not moved: tests of another process work in it.)"""
    patched.setattr(settings, "LABSITE_REGIONS", {**settings.LABSITE_REGIONS, "local": settings.LABSITE_HOME / "not-mounted"})
    yield


@contextmanager
def without_room(patched: pytest.MonkeyPatch) -> Iterator[None]:
    def full(*_: object) -> None:
        raise StoreFull(errno.ENOSPC, "There is no room left in the store.")

    patched.setattr(LocalStore, "local_path", full)
    yield


@contextmanager
def unreadable(patched: pytest.MonkeyPatch) -> Iterator[None]:
    def fails(place: Any, *more: Any, **asked: Any) -> Any:
        if isinstance(place, Path):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return open(place, *more, **asked)

    patched.setattr(staging, "open", fails, raising=False)
    yield


def raises(place: object, name: str, number: int) -> Fault:
    @contextmanager
    def faulty(patched: pytest.MonkeyPatch) -> Iterator[None]:
        def fails(*_: Any, **__: Any) -> None:
            raise OSError(number, os.strerror(number))

        patched.setattr(place, name, fails)
        yield

    return faulty


@contextmanager
def not_brought(patched: pytest.MonkeyPatch) -> Iterator[None]:
    def full(attempt: object) -> LocalPool:
        raise NoAnswer(FULL)

    patched.setattr(dispatching, "place_of", full)
    yield


PASSING: dict[str, tuple[Fault, str]] = {
    "store away": (away, "the store does not answer"),
    "no room for a copy": (without_room, "the machine of labsite has no room for a file of the store"),
    "store unreadable": (unreadable, "main.py could not be read from the store: Input/output error"),
    "pool full": (raises(staging, "_write_whole", errno.ENOSPC), "main.py could not be staged: No space left on device"),
    "quota": (raises(staging, "_write", errno.EDQUOT), "the run folder could not be made: Disk quota exceeded"),
    "launcher not brought": (not_brought, FULL),
}


def waiting(laboratory: Laboratory, words: str) -> None:
    with laboratory.opened():
        assert set(Run.objects.values_list("status", flat=True)) == {RunStatus.STARTING}
        assert set(Watch.objects.values_list("observed_reason", flat=True)) == {f"It could not be started yet: {words}."}


@pytest.mark.parametrize("fault", PASSING)
def test_a_queue_waits_for_what_passes_and_then_succeeds(monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    laboratory = make_laboratory()
    happens, words = PASSING[fault]
    with laboratory.opened():
        runs = [launch(laboratory), launch(laboratory)]
    with monkeypatch.context() as patched, happens(patched):
        dispatch(laboratory)
        waiting(laboratory, words)
        for _ in range(2):
            watch(laboratory)
            waiting(laboratory, words)
    for run in runs:
        assert drive(laboratory, run).status == RunStatus.SUCCEEDED
    settled(laboratory)


def test_a_file_that_the_store_has_lost_fails_the_run() -> None:
    laboratory = make_laboratory()
    with laboratory.opened():
        run = launch(laboratory)
        for sha256 in Blob.objects.values_list("sha256", flat=True):
            place = LocalStore(Path(str(settings.LABSITE_REGIONS["local"]))).local_path(laboratory.workspace.pk, sha256)
            assert place is not None
            place.unlink()
    dispatch(laboratory)
    with laboratory.opened():
        run.refresh_from_db()
        assert (run.status, run.reason_code) == (RunStatus.FAILED, "could_not_start")
        assert "a file of the store is missing" in run.reason
    settled(laboratory)


@pytest.mark.parametrize(("number", "passes"), [(errno.ENOSPC, True), (errno.EACCES, False)])
def test_a_launcher_that_finds_no_room_is_brought_later(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, number: int, passes: bool) -> None:
    def fails(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patched:
        patched.setattr(os, "rename", fails)
        with pytest.raises(PoolError, match=os.strerror(number)) as caught:
            bring(tmp_path / "pool")
    assert isinstance(caught.value, NoAnswer) is passes
    assert bring(tmp_path / "pool").is_file()
