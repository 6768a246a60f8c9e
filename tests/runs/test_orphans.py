"""What a pool still has and labsite has not is ended there, and said; nothing else is touched. On the real local pool and a real SSH host."""

import uuid
from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.utils import timezone

from runs.commands.lost import declare_lost
from runs.jobs import lanes, orphans
from runs.jobs.orphans import find_orphans
from runs.models import Attempt, Run, Watch
from runs.pools.ssh_thread import close_all
from tests.factories_runs import Laboratory, dispatch, drive, launch, make_laboratory, watch_only
from tests.runs.attempts import WAITS, folder_of, let_go, settled, started, until
from tests.runs.ended import collect_late, fresh
from tests.runs.pools.ssh_host import SSHHost
from tests.runs.test_ssh_engine import far_laboratory, far_run
from workspaces.models import AuditEvent, Installation

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.pool]


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orphans, "SETTLED_SECONDS", 0)
    monkeypatch.setattr(orphans, "GRACE_SECONDS", 0.2)


def find(laboratory: Laboratory) -> None:
    find_orphans(workspace_id=laboratory.workspace.pk.hex, subject_id=laboratory.workspace.pk.hex)
    assert lanes.wait(30, lanes.Work.ORPHANS)


def lose(laboratory: Laboratory, run: Run, attempt: Attempt) -> None:
    with laboratory.opened():
        Watch.objects.filter(attempt=attempt).update(observed="unknown", observed_at=timezone.now() - timedelta(seconds=120))
        declare_lost(actor=laboratory.owner, run=run, reason="the host is away")


def test_a_run_that_was_declared_lost_and_is_still_at_work_is_ended_and_that_is_said_once() -> None:
    laboratory = make_laboratory(code=WAITS)
    run, attempt = started(laboratory)
    other = started_beside(laboratory)
    lose(laboratory, run, attempt)
    before, state = fresh(laboratory, run), folder_of(laboratory, attempt) / "state"
    find(laboratory)
    until((state / "exit.json").exists, "its end")
    find(laboratory)
    after = fresh(laboratory, run)
    unchanged = ("status", "reason_code", "spent_gpu_ms", "ended_at")
    assert [getattr(after, name) for name in unchanged] == [getattr(before, name) for name in unchanged]
    assert after.reason == f"{before.reason} Attempt 1 was found at work on local afterwards, and was ended there."
    with laboratory.opened():
        assert AuditEvent.objects.filter(verb="attempt.found_alive", subject_id=run.pk).count() == 1
        assert Run.objects.get(pk=other.pk).status == "running", "one that is open here was ended"
        assert Watch.objects.get(attempt=attempt).lease_until is None, "what it left waits for an hour"

    def is_collected() -> bool:
        collect_late(laboratory, attempt)
        return "collected later" in fresh(laboratory, run).reason

    until(is_collected, "what it left")
    let_go(laboratory, other)
    drive(laboratory, other)
    settled(laboratory)


def started_beside(laboratory: Laboratory) -> Run:
    """One more run at work."""
    with laboratory.opened():
        run = launch(laboratory)
    dispatch(laboratory)
    watch_only(laboratory)
    return run


def test_what_bears_another_epoch_is_not_touched() -> None:
    laboratory = make_laboratory(code=WAITS)
    run, attempt = started(laboratory)
    watch_only(laboratory)
    lose(laboratory, run, attempt)
    epoch = Installation.objects.get(is_current=True).epoch
    Installation.objects.update(epoch=uuid.uuid4().hex[:8])  # as in a copy of the database that was made to serve elsewhere
    find(laboratory)
    assert not (folder_of(laboratory, attempt) / "state" / "cancel.json").exists()
    Installation.objects.update(epoch=epoch)
    find(laboratory)
    until((folder_of(laboratory, attempt) / "state" / "exit.json").exists, "its end")


@pytest.fixture
def host() -> Iterator[SSHHost]:
    found = SSHHost()
    yield found
    close_all()
    found.close()


def test_a_host_that_returns_has_what_was_given_up_ended(host: SSHHost) -> None:
    laboratory = far_laboratory(host, WAITS)
    run = far_run(laboratory)
    dispatch(laboratory)
    with laboratory.opened():
        attempt = Attempt.objects.get(run=run)
    watch_only(laboratory)
    host.stop()
    watch_only(laboratory)
    lose(laboratory, run, attempt)
    find(laboratory)
    assert "found at work" not in fresh(laboratory, run).reason, "nobody has answered yet"
    host.start()
    end = host.home / "labsite" / "runs" / laboratory.workspace.pk.hex / attempt.key / "state" / "exit.json"
    assert not end.exists()

    def is_ended() -> bool:
        find(laboratory)
        return end.exists()

    until(is_ended, "its end there", seconds=40)
    assert fresh(laboratory, run).reason.endswith("Attempt 1 was found at work on gpu-host afterwards, and was ended there.")
    settled(laboratory)
