"""Whatever dies, and whenever: every run starts once, ends once, and its money is settled once. On the real local pool."""

import json
import time
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import call_command
from django.utils import timezone

from runs import ingest
from runs.jobs import collect as collecting
from runs.jobs import dispatch as dispatching
from runs.jobs import watch as watching
from runs.jobs.tidy import tidy_workspace
from runs.lifecycle import RunStatus
from runs.models import Attempt, MetricChunk, MetricSeries, QueueItem, Run, Watch
from runs.pools.base import Observation, PoolError, Status
from runs.pools.local import LocalPool
from runs.pools.processes import is_alive
from tests.factories_runs import HOUR, dispatch, drive, launch, make_laboratory, watch
from tests.runs.attempts import WAITS, content, dies, folder_of, kill_launcher, let_go, levels, settled, started, until, watch_until
from workspaces.models import AuditEvent, EngineSlot

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.pool]


@dies
@levels
def test_a_dispatcher_that_dies_before_the_pool_was_called_is_made_up_for(monkeypatch: pytest.MonkeyPatch, isolation: str) -> None:
    laboratory = make_laboratory(code=WAITS, isolation=isolation)
    with laboratory.opened():
        run = launch(laboratory)

    def die(*_: object) -> None:
        raise SystemExit  # ends the thread in the midst

    with monkeypatch.context() as patched:
        patched.setattr(dispatching, "submit", die)
        dispatch(laboratory)
    with laboratory.opened():
        attempt = Attempt.objects.get(run=run)
        assert (attempt.status, folder_of(laboratory, attempt).exists()) == ("created", False)
        Watch.objects.update(lease_until=timezone.now() + timedelta(seconds=60))  # as kill -9 leaves it
    watch(laboratory)
    assert not folder_of(laboratory, attempt).exists(), "another one's lease was not respected"
    with laboratory.opened():
        Watch.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    for _ in range(3):
        watch(laboratory)
    let_go(laboratory, run)
    done = drive(laboratory, run)
    with laboratory.opened():
        assert done.status == RunStatus.SUCCEEDED
        assert Attempt.objects.get(run=run).key == attempt.key
        assert content(laboratory, run, "starts") == b"started\n"
    settled(laboratory)


@dies
@levels
def test_a_watcher_that_dies_in_the_midst_neither_loses_nor_doubles_a_point(monkeypatch: pytest.MonkeyPatch, isolation: str) -> None:
    code = b"""
import json
with open("../metrics.jsonl", "a") as metrics:
    for step in range(30_000):
        metrics.write(json.dumps({"key": f"k{step % 3}", "value": step, "step": step}) + "\\n")
"""
    laboratory = make_laboratory(code=code, isolation=isolation)
    with laboratory.opened():
        run = launch(laboratory)
    take, calls = ingest._take_metrics, []

    def dies_at_times(*given: Any) -> int:
        consumed = take(*given)
        calls.append(consumed)
        if len(calls) in (1, 3, 4):
            raise SystemExit
        return consumed

    monkeypatch.setattr(ingest, "_take_metrics", dies_at_times)
    for _ in range(200):
        dispatch(laboratory)
        watch(laboratory)
        with laboratory.opened():
            if Run.objects.get(pk=run.pk).is_terminal:
                break
        time.sleep(0.05)
    with laboratory.opened():
        assert Run.objects.get(pk=run.pk).status == RunStatus.SUCCEEDED
        for number in range(3):
            series = MetricSeries.objects.get(run=run, key=f"k{number}")
            steps = [step for chunk in MetricChunk.objects.filter(series=series).order_by("pk") for step in chunk.steps]
            assert steps == list(range(number, 30_000, 3))
            assert series.count == 10_000
    assert len(calls) > 4
    settled(laboratory)


@levels
def test_a_lost_launcher_is_made_up_for_once(isolation: str) -> None:
    laboratory = make_laboratory(code=WAITS, isolation=isolation)
    run, attempt = started(laboratory, gpu_ms=HOUR)
    kill_launcher(laboratory, attempt)
    watch_until(laboratory, run, RunStatus.QUEUED)
    with laboratory.opened():
        run.refresh_from_db()
        assert (run.status, run.reserved_gpu_ms, QueueItem.objects.count()) == (RunStatus.QUEUED, HOUR, 1)
        assert content(laboratory, run, ".labsite/attempt-1/stdout.log") == b"waiting\n", "the log of the lost attempt is gone"
    dispatch(laboratory)
    with laboratory.opened():
        second = Attempt.objects.get(run=run, number=2)
    until((folder_of(laboratory, second) / "stdout.log").stat, "the second attempt")
    kill_launcher(laboratory, second)
    done = drive(laboratory, run)
    with laboratory.opened():
        assert (done.status, done.reason_code) == (RunStatus.LOST, "launcher_lost")
        assert list(Attempt.objects.filter(run=run).order_by("number").values_list("status", flat=True)) == ["lost", "lost"]
        assert done.spent_gpu_ms > 0
    settled(laboratory)


def test_an_interruption_does_not_use_up_the_try_after_a_loss() -> None:
    laboratory = make_laboratory(code=WAITS)
    run, _ = started(laboratory)
    call_command("interrupt_local")
    dispatch(laboratory)
    with laboratory.opened():
        second = Attempt.objects.get(run=run, number=2)
    until(lambda: (folder_of(laboratory, second) / "state" / "pid.json").exists(), "the second attempt")
    kill_launcher(laboratory, second)
    watch_until(laboratory, run, RunStatus.QUEUED)
    dispatch(laboratory)
    let_go(laboratory, run)
    assert drive(laboratory, run).status == RunStatus.SUCCEEDED
    with laboratory.opened():
        statuses = list(Attempt.objects.filter(run=run).order_by("number").values_list("status", flat=True))
        assert statuses == ["interrupted", "lost", "ended"]
    settled(laboratory)


def test_a_folder_that_somebody_removed_is_a_loss_and_stops_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "MISSING_GRACE_SECONDS", 0)
    laboratory = make_laboratory(code=WAITS)
    run, attempt = started(laboratory)
    folder = folder_of(laboratory, attempt)
    launcher = json.loads((folder / "state" / "lock").read_text())["launcher"]
    folder.rename(folder.with_name("away"))
    until(lambda: not is_alive(launcher), "the launcher ends what it can no longer reach")
    with laboratory.opened():
        other = launch(laboratory)
    watch(laboratory)
    dispatch(laboratory)
    let_go(laboratory, other)
    assert drive(laboratory, other).status == RunStatus.SUCCEEDED
    let_go(laboratory, run)
    assert drive(laboratory, run).status == RunStatus.SUCCEEDED
    with laboratory.opened():
        assert list(Attempt.objects.filter(run=run).order_by("number").values_list("status", flat=True)) == ["lost", "ended"]
    settled(laboratory)


@pytest.mark.parametrize("answer", ["error", "unknown"])
def test_unknown_changes_nothing(monkeypatch: pytest.MonkeyPatch, answer: str) -> None:
    laboratory = make_laboratory(code=WAITS)
    run, attempt = started(laboratory, gpu_ms=HOUR)

    def observe(*_: object) -> Observation:
        if answer == "error":
            raise PoolError("the machine does not answer")
        return Observation(Status.UNKNOWN, reason="the machine does not answer")

    with laboratory.opened():
        events = AuditEvent.objects.count()
    with monkeypatch.context() as patched:
        patched.setattr(LocalPool, "observe", observe)
        patched.setattr(watching, "MISSING_GRACE_SECONDS", 0)
        for _ in range(3):
            watch(laboratory)
            dispatch(laboratory)
        with laboratory.opened():
            seen = Watch.objects.get(attempt=attempt)
            assert (seen.observed, seen.observed_reason) == ("unknown", "the machine does not answer")
            run.refresh_from_db()
            assert (run.status, run.reserved_gpu_ms, EngineSlot.objects.count()) == ("running", HOUR, 1)
            assert AuditEvent.objects.count() == events
    let_go(laboratory, run)
    assert drive(laboratory, run).status == RunStatus.SUCCEEDED
    settled(laboratory)


def test_one_poisoned_attempt_does_not_keep_others_from_being_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    laboratory = make_laboratory()
    with laboratory.opened():
        poisoned, sound = launch(laboratory), launch(laboratory)
    look = watching.look

    def stumbles(actor: Any, attempt: Attempt, watch: Watch, fence: int) -> None:
        if attempt.run_id == poisoned.pk:
            raise ZeroDivisionError("as no one foresaw")
        look(actor, attempt, watch, fence)

    with monkeypatch.context() as patched:
        patched.setattr(watching, "look", stumbles)
        assert drive(laboratory, sound).status == RunStatus.SUCCEEDED
        with laboratory.opened():
            assert "ZeroDivisionError" in Watch.objects.get(attempt__run=poisoned).observed_reason
    assert drive(laboratory, poisoned).status == RunStatus.SUCCEEDED
    settled(laboratory)


def test_a_folder_left_behind_is_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    laboratory = make_laboratory()
    with laboratory.opened():
        run = launch(laboratory)
    with monkeypatch.context() as patched:
        patched.setattr(collecting, "remove_folder", lambda *_: None)
        drive(laboratory, run)
    with laboratory.opened():
        folder = folder_of(laboratory, Attempt.objects.get(run=run))
    assert folder.exists()
    tidy_workspace(workspace_id=laboratory.workspace.pk.hex, subject_id=laboratory.workspace.pk.hex)
    assert not folder.exists()
