"""A pool that can neither start an attempt nor bar its name, such as one whose disk is full: the run waits, and its page says why."""

import pytest

from runs.lifecycle import RunStatus
from runs.models import Run, Watch
from runs.pools.base import NoAnswer, PoolError
from runs.pools.local import LocalPool
from tests.factories_pages import client_of
from tests.factories_runs import dispatch, drive, launch, make_laboratory, watch
from tests.runs.attempts import settled

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
