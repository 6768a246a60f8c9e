"""Whatever dies, and whenever: every run starts once, ends once, and its money is settled once. On the real local pool."""

import json
import os
import signal
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.management import call_command
from django.db import connection
from django.utils import timezone

from runs import ingest
from runs.commands.run import cancel_run
from runs.jobs import dispatch as dispatching
from runs.jobs import watch as watching
from runs.jobs.sweep import sweep_workspace
from runs.lifecycle import ACTIVE, TERMINAL, RunStatus
from runs.models import Artifact, Attempt, MetricChunk, MetricSeries, QueueItem, Run, Watch
from runs.pools.base import Observation, PoolError, Status
from runs.pools.local import LocalPool
from runs.pools.processes import is_alive
from tests.factories_registry import make_agent_version
from tests.factories_runs import HOUR, Laboratory, dispatch, drive, launch, make_laboratory, watch
from workspaces import store
from workspaces.audit import Refusal
from workspaces.commands.limit import set_limit
from workspaces.commands.pool import bind_pool, change_pool
from workspaces.models import AgentFile, AuditEvent, EngineSlot, LedgerAccount, Limit, Pool, Unit
from workspaces.queries.chain import verify_chain
from workspaces.queries.ledger import recount

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.pool]
levels = pytest.mark.parametrize(
    "isolation",
    ["none", pytest.param("user", marks=pytest.mark.skipif(os.geteuid() != 0, reason="own user ids need root: run as root"))],
)

WAITS = b"""
import os, time
with open("../outputs/starts", "a") as starts:
    starts.write("started\\n")
print("waiting", flush=True)
while not os.path.exists("../go"):
    time.sleep(0.02)
"""
DEAF = b"import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('deaf', flush=True)\ntime.sleep(60)\n"


def folder_of(laboratory: Laboratory, attempt: Attempt) -> Path:
    return Path(settings.LABSITE_RUNS) / "runs" / laboratory.workspace.pk.hex / attempt.key


def let_go(laboratory: Laboratory, run: Run) -> None:
    """What a run of WAITS waits for; written by labsite's own user, who owns the folder."""
    with laboratory.opened():
        (folder_of(laboratory, Attempt.objects.filter(run=run).latest("number")) / "go").touch()


def until(holds: Callable[[], object], what: str, seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.02)


def started(laboratory: Laboratory, **asked: object) -> tuple[Run, Attempt]:
    """A run whose program has said its first word."""
    with laboratory.opened():
        run = launch(laboratory, **asked)
    dispatch(laboratory)
    with laboratory.opened():
        attempt = Attempt.objects.get(run=run)
    until(lambda: (folder_of(laboratory, attempt) / "stdout.log").stat().st_size, "the program's first word")
    return run, attempt


def settled(laboratory: Laboratory) -> dict[str, int]:
    """Nothing is held any more and every sum is right; the week's balances."""
    with laboratory.opened():
        assert not EngineSlot.objects.exists()
        assert not QueueItem.objects.exists()
        balances = {row.side: row.balance for row in LedgerAccount.objects.filter(unit="gpu_ms", window="week")}
        assert balances["reserved"] == 0
        assert sum(balances.values()) == 0
        assert recount() == []
        assert verify_chain().is_whole
        assert balances["spent"] == sum(Run.objects.values_list("spent_gpu_ms", flat=True))
        ended = AuditEvent.objects.filter(verb__in=["run.ended", "run.cancelled", "attempt.failed_to_start"])
        assert ended.count() == Run.objects.filter(status__in=sorted(TERMINAL)).count() == Run.objects.count()
    return balances


def kept(run: Run) -> dict[str, str]:
    return dict(Artifact.objects.filter(run=run).values_list("path", "blob__sha256"))


def content(laboratory: Laboratory, run: Run, path: str) -> bytes:
    blob = Artifact.objects.get(run=run, path=path).blob
    return b"".join(store.open(blob.region, laboratory.workspace.pk, blob.sha256))


@levels
def test_a_dispatcher_that_dies_before_the_pool_was_called_is_made_up_for(monkeypatch: pytest.MonkeyPatch, isolation: str) -> None:
    laboratory = make_laboratory(code=WAITS, isolation=isolation)
    with laboratory.opened():
        run = launch(laboratory)

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(dispatching, "submit", die)
        with pytest.raises(KeyboardInterrupt):
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
            raise KeyboardInterrupt
        return consumed

    monkeypatch.setattr(ingest, "_take_metrics", dies_at_times)
    for _ in range(200):
        dispatch(laboratory)
        try:
            watch(laboratory)
        except KeyboardInterrupt:
            continue
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


def kill_launcher(laboratory: Laboratory, attempt: Attempt) -> int:
    state = folder_of(laboratory, attempt) / "state"
    os.kill(json.loads((state / "lock").read_text())["launcher"]["pid"], signal.SIGKILL)
    return int(json.loads((state / "pid.json").read_text())["pid"])


@levels
def test_a_lost_launcher_is_made_up_for_once(isolation: str) -> None:
    laboratory = make_laboratory(code=WAITS, isolation=isolation)
    run, attempt = started(laboratory, gpu_ms=HOUR)
    kill_launcher(laboratory, attempt)
    watch(laboratory)
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
    watch(laboratory)
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


def in_threads(count: int, work: Callable[[], None]) -> list[BaseException]:
    """Run `work` in threads with a connection each; what they raised."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            raised.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return raised


@pytest.mark.parametrize("at_once", [1, 4])
def test_dispatchers_and_watchers_side_by_side_start_and_end_everything_once(at_once: int) -> None:
    code = b"open('../outputs/starts', 'a').write('started')\n"
    laboratory = make_laboratory(code=code, at_once=at_once)
    with laboratory.opened():
        runs = [launch(laboratory, gpu_ms=HOUR) for _ in range(5)]
    most: list[int] = []
    deadline = time.monotonic() + 60

    def work() -> None:
        while time.monotonic() < deadline:
            dispatch(laboratory)
            with laboratory.opened():
                most.append(Run.objects.filter(status__in=sorted(ACTIVE)).count())
            watch(laboratory)
            with laboratory.opened():
                if not Run.objects.exclude(status__in=sorted(TERMINAL)).exists():
                    return

    assert in_threads(4, work) == []
    assert max(most) <= at_once
    with laboratory.opened():
        for run in runs:
            run.refresh_from_db()
            assert run.status == RunStatus.SUCCEEDED
            assert Attempt.objects.get(run=run).number == 1
            assert content(laboratory, run, "starts") == b"started"
    settled(laboratory)


def test_starting_and_cancelling_at_the_same_moment_never_wait_in_a_circle() -> None:
    laboratory = make_laboratory(at_once=48, slots=16)
    with laboratory.opened():
        runs = [launch(laboratory, gpu_ms=HOUR // 10) for _ in range(12)]
    left = list(runs)

    def work() -> None:
        if threading.current_thread().name.endswith(("1", "3", "5", "7", "9")):
            dispatch(laboratory)
            watch(laboratory)
            return
        while left:
            run = left.pop()
            with laboratory.opened():
                try:
                    cancel_run(actor=laboratory.owner, run=run)
                except Refusal:
                    continue

    assert in_threads(4, work) == []
    for run in runs:
        assert drive(laboratory, run).status in (RunStatus.CANCELLED, RunStatus.SUCCEEDED)
    settled(laboratory)


@levels
def test_cancel_between_claim_and_start_keeps_the_program_from_starting(monkeypatch: pytest.MonkeyPatch, isolation: str) -> None:
    laboratory = make_laboratory(code=WAITS, isolation=isolation)
    with laboratory.opened():
        run = launch(laboratory)
    submit = dispatching.submit

    def cancel_first(actor: Any, attempt: Attempt) -> None:
        cancel_run(actor=laboratory.owner, run=run)
        submit(actor, attempt)

    monkeypatch.setattr(dispatching, "submit", cancel_first)
    done = drive(laboratory, run)
    with laboratory.opened():
        assert (done.status, done.spent_gpu_ms, done.started_at) == (RunStatus.CANCELLED, 0, None)
        assert kept(run) == {}
        assert "attempt.running" not in set(AuditEvent.objects.values_list("verb", flat=True))
    settled(laboratory)


@levels
@pytest.mark.parametrize("code", [WAITS, DEAF], ids=["polite", "deaf"])
def test_a_running_run_is_cancelled_once_its_processes_have_ended(monkeypatch: pytest.MonkeyPatch, isolation: str, code: bytes) -> None:
    monkeypatch.setattr(watching, "GRACE_SECONDS", 0.5)
    laboratory = make_laboratory(code=code, isolation=isolation)
    run, attempt = started(laboratory)
    process = json.loads((folder_of(laboratory, attempt) / "state" / "pid.json").read_text())
    with laboratory.opened():
        cancel_run(actor=laboratory.owner, run=run, reason="enough")
    while True:
        watch(laboratory)
        with laboratory.opened():
            status = Run.objects.get(pk=run.pk).status
        assert status in ("cancelling", "cancelled")
        if status == "cancelled":
            break
        time.sleep(0.02)
    assert not is_alive(process), "the page says cancelled while work runs"
    with laboratory.opened():
        run.refresh_from_db()
        assert (run.reason_code, run.reason) == ("cancelled", "enough")
        assert ".labsite/attempt-1/stdout.log" in kept(run)
        with pytest.raises(Refusal, match="has ended already"):
            cancel_run(actor=laboratory.owner, run=run)
    settled(laboratory)


def test_a_run_that_ends_by_itself_before_the_cancel_reaches_it_keeps_its_own_end() -> None:
    laboratory = make_laboratory(code=WAITS)
    run, attempt = started(laboratory)
    let_go(laboratory, run)
    until(lambda: (folder_of(laboratory, attempt) / "state" / "exit.json").exists(), "the end")
    with laboratory.opened():
        cancel_run(actor=laboratory.owner, run=run)
    assert drive(laboratory, run).status == RunStatus.SUCCEEDED
    settled(laboratory)


def test_the_wall_limit_ends_it_within_what_was_reserved() -> None:
    laboratory = make_laboratory(code=WAITS)
    with laboratory.opened():
        run = launch(laboratory, gpu_ms=13_000)  # a second to run and twelve to end in
    done = drive(laboratory, run)
    assert (done.status, done.reason_code) == (RunStatus.TIMED_OUT, "wall_limit")
    assert 1000 <= done.spent_gpu_ms <= 13_000
    settled(laboratory)


@levels
def test_labsite_that_stops_gives_the_run_back_to_the_queue(isolation: str) -> None:
    laboratory = make_laboratory(code=WAITS, isolation=isolation)
    run, _ = started(laboratory, gpu_ms=HOUR)
    call_command("interrupt_local")
    with laboratory.opened():
        run.refresh_from_db()
        assert (run.status, run.reserved_gpu_ms) == (RunStatus.QUEUED, HOUR)
        assert not EngineSlot.objects.exists()
        first_cost = run.spent_gpu_ms
        assert first_cost > 0
        assert content(laboratory, run, ".labsite/attempt-1/stdout.log") == b"waiting\n"
    dispatch(laboratory)
    let_go(laboratory, run)
    done = drive(laboratory, run)
    assert done.status == RunStatus.SUCCEEDED
    assert first_cost < done.spent_gpu_ms <= HOUR
    with laboratory.opened():
        assert list(Attempt.objects.filter(run=run).order_by("number").values_list("status", flat=True)) == ["interrupted", "ended"]
    settled(laboratory)


def test_what_nobody_asked_to_end_is_not_called_cancelled() -> None:
    """Labsite died between asking the launcher to end and writing it down, or the machine went down."""
    laboratory = make_laboratory(code=WAITS)
    run, attempt = started(laboratory)
    os.kill(json.loads((folder_of(laboratory, attempt) / "state" / "lock").read_text())["launcher"]["pid"], signal.SIGTERM)
    until(lambda: (folder_of(laboratory, attempt) / "state" / "exit.json").exists(), "the end")
    watch(laboratory)
    with laboratory.opened():
        assert Run.objects.get(pk=run.pk).status == RunStatus.QUEUED
    dispatch(laboratory)
    let_go(laboratory, run)
    assert drive(laboratory, run).status == RunStatus.SUCCEEDED
    settled(laboratory)


def test_stopping_labsite_leaves_alone_what_ended_by_itself() -> None:
    laboratory = make_laboratory(code=WAITS)
    run, attempt = started(laboratory, gpu_ms=13_000)
    until(lambda: (folder_of(laboratory, attempt) / "state" / "exit.json").exists(), "the wall limit")
    call_command("interrupt_local")
    with laboratory.opened():
        run.refresh_from_db()
        assert run.is_active
    assert drive(laboratory, run).status == RunStatus.TIMED_OUT
    settled(laboratory)


def test_a_run_interrupted_at_the_end_of_its_time_is_not_started_beyond_its_reservation() -> None:
    laboratory = make_laboratory(code=WAITS)
    run, attempt = started(laboratory, gpu_ms=14_000)  # two seconds
    until(lambda: time.time() > attempt.created_at.timestamp() + 1.2, "most of its time")
    call_command("interrupt_local")
    with laboratory.opened():
        run.refresh_from_db()
    done = drive(laboratory, run)
    assert done.status == RunStatus.TIMED_OUT
    assert done.spent_gpu_ms <= 14_000
    settled(laboratory)


@pytest.mark.parametrize("damage", ["missing", "changed"])
def test_what_cannot_be_staged_fails_and_releases_everything(damage: str) -> None:
    laboratory = make_laboratory()
    with laboratory.opened():
        run = launch(laboratory, gpu_ms=HOUR)
        blob = AgentFile.objects.select_related("blob").get().blob
        place = store.local_path(blob.region, laboratory.workspace.pk, blob.sha256)
        assert place is not None
        place.unlink()
        if damage == "changed":
            place.write_bytes(b"print('something else')\n")
    dispatch(laboratory)
    with laboratory.opened():
        run.refresh_from_db()
        assert (run.status, run.reason_code, run.spent_gpu_ms) == (RunStatus.FAILED, "could_not_start", 0)
        assert "store" in run.reason or "hash" in run.reason
    assert settled(laboratory)["available"] == 100 * HOUR


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


def test_a_reservation_follows_its_run_into_the_window_where_it_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    laboratory = make_laboratory(weekly_gpu_hours=10)
    with laboratory.opened():
        set_limit(
            actor=laboratory.owner, unit=Unit.API_MICROS, window=Limit.Window.WEEK, amount=10_000_000, mode=Limit.Mode.STOP, reason="api"
        )
        run = launch(laboratory, gpu_ms=HOUR, api_micros=2_000_000)
        before = run.budget_window_at
    now = timezone.now
    monkeypatch.setattr(timezone, "now", lambda: now() + timedelta(days=7))
    dispatch(laboratory)
    with laboratory.opened():
        run.refresh_from_db()
        assert before is not None and run.budget_window_at is not None
        assert timedelta(days=6) < run.budget_window_at - before < timedelta(days=8)
        for unit, amount in (("gpu_ms", HOUR), ("api_micros", 2_000_000)):
            held = dict(LedgerAccount.objects.filter(unit=unit, window="week", side="reserved").values_list("starts_at", "balance"))
            assert held == {before: 0, run.budget_window_at: amount}
    done = drive(laboratory, run)
    assert done.status == RunStatus.SUCCEEDED
    with laboratory.opened():
        spent = dict(LedgerAccount.objects.filter(unit="gpu_ms", window="week", side="spent").values_list("starts_at", "balance"))
        assert spent == {before: 0, run.budget_window_at: done.spent_gpu_ms}
        assert recount() == []


def test_a_run_without_room_in_its_window_lets_smaller_ones_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    laboratory = make_laboratory(weekly_gpu_hours=10)
    with laboratory.opened():
        large = launch(laboratory, gpu_ms=8 * HOUR)
        small = launch(laboratory, gpu_ms=1 * HOUR)
        set_limit(actor=laboratory.owner, unit=Unit.GPU_MS, window=Limit.Window.WEEK, amount=2 * HOUR, mode=Limit.Mode.STOP, reason="less")
    now = timezone.now
    monkeypatch.setattr(timezone, "now", lambda: now() + timedelta(days=7))
    assert drive(laboratory, small).status == RunStatus.SUCCEEDED
    with laboratory.opened():
        assert Run.objects.get(pk=large.pk).status == RunStatus.QUEUED


def test_a_raised_rate_charges_nobody_more_than_was_agreed() -> None:
    laboratory = make_laboratory(code=WAITS)
    run, _ = started(laboratory, gpu_ms=HOUR)
    with laboratory.opened():
        change_pool(actor=laboratory.owner, pool=Pool.objects.get(slug="local"), milli_gpu_per_slot=1_000_000)
    let_go(laboratory, run)
    assert drive(laboratory, run).spent_gpu_ms < 60_000
    settled(laboratory)


def test_an_engine_is_shared_by_its_places() -> None:
    first, second = make_laboratory("one", code=WAITS, slots=1, engine_slots=1), make_laboratory("two", code=WAITS, slots=1, engine_slots=1)
    run, _ = started(first)
    with second.opened():
        other = launch(second)
    dispatch(second)
    with second.opened():
        assert (Run.objects.get(pk=other.pk).status, Attempt.objects.count()) == (RunStatus.QUEUED, 0)
    let_go(first, run)
    assert drive(first, run).status == RunStatus.SUCCEEDED
    dispatch(second)
    let_go(second, other)
    assert drive(second, other).status == RunStatus.SUCCEEDED
    settled(second)


def test_a_full_pool_does_not_hold_up_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatching, "BATCH", 4)
    laboratory = make_laboratory(code=WAITS, slots=1)
    with laboratory.opened():
        bind_pool(actor=laboratory.owner, engine="local", slug="other", slots=1, isolation=Pool.Isolation.NONE)
        waiting = [launch(laboratory, priority=1) for _ in range(6)]
        passing = launch(laboratory, pool="other")
    dispatch(laboratory)
    with laboratory.opened():
        assert Run.objects.get(pk=passing.pk).is_active
        assert Run.objects.get(pk=waiting[0].pk).is_active
        for run in waiting[1:]:
            cancel_run(actor=laboratory.owner, run=run)
    for run in (waiting[0], passing):
        let_go(laboratory, run)
        assert drive(laboratory, run).status == RunStatus.SUCCEEDED


def test_one_poisoned_attempt_does_not_keep_others_from_being_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    laboratory = make_laboratory()
    with laboratory.opened():
        poisoned, sound = launch(laboratory), launch(laboratory)
    look = watching.look

    def stumbles(actor: Any, attempt: Attempt) -> None:
        if attempt.run_id == poisoned.pk:
            raise ZeroDivisionError("as no one foresaw")
        look(actor, attempt)

    with monkeypatch.context() as patched:
        patched.setattr(watching, "look", stumbles)
        assert drive(laboratory, sound).status == RunStatus.SUCCEEDED
        with laboratory.opened():
            assert "ZeroDivisionError" in Watch.objects.get(attempt__run=poisoned).observed_reason
    assert drive(laboratory, poisoned).status == RunStatus.SUCCEEDED
    settled(laboratory)


def test_outputs_that_can_not_be_collected_do_not_hold_slots_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    laboratory = make_laboratory(code=b"open('../outputs/a', 'w').write('a')\n")
    with laboratory.opened():
        run = launch(laboratory)

    def broken(*_: object) -> None:
        raise ZeroDivisionError("as no one foresaw")

    monkeypatch.setattr(watching, "harvest", broken)
    dispatch(laboratory)
    with laboratory.opened():
        attempt = Attempt.objects.get(run=run)
    until(lambda: (folder_of(laboratory, attempt) / "state" / "exit.json").exists(), "the end")
    watch(laboratory)
    with laboratory.opened():
        assert Run.objects.get(pk=run.pk).is_active, "it is tried again for a while"
    monkeypatch.setattr(watching, "PATIENCE_SECONDS", 0)
    watch(laboratory)
    sweep_workspace(workspace_id=laboratory.workspace.pk.hex, subject_id=laboratory.workspace.pk.hex)
    with laboratory.opened():
        assert Run.objects.get(pk=run.pk).status == RunStatus.SUCCEEDED
    assert (folder_of(laboratory, attempt) / "outputs" / "a").exists(), "what was not collected is lost"
    settled(laboratory)


def test_a_folder_left_behind_is_swept(monkeypatch: pytest.MonkeyPatch) -> None:
    laboratory = make_laboratory()
    with laboratory.opened():
        run = launch(laboratory)
    with monkeypatch.context() as patched:
        patched.setattr(watching, "remove_folder", lambda *_: None)
        drive(laboratory, run)
    with laboratory.opened():
        folder = folder_of(laboratory, Attempt.objects.get(run=run))
    assert folder.exists()
    sweep_workspace(workspace_id=laboratory.workspace.pk.hex, subject_id=laboratory.workspace.pk.hex)
    assert not folder.exists()


def test_two_slots_wait_for_two_and_nobody_overtakes_them() -> None:
    laboratory = make_laboratory(code=WAITS, slots=2)
    run, _ = started(laboratory)
    with laboratory.opened():
        make_agent_version(laboratory.owner, "wide", code=b"print(1)\n", slots=2)
        wide, narrow = launch(laboratory, agent="wide"), launch(laboratory)
    dispatch(laboratory)
    with laboratory.opened():
        assert {Run.objects.get(pk=one.pk).status for one in (wide, narrow)} == {"queued"}
    let_go(laboratory, run)
    assert drive(laboratory, wide).status == RunStatus.SUCCEEDED
    dispatch(laboratory)
    let_go(laboratory, narrow)
    assert drive(laboratory, narrow).status == RunStatus.SUCCEEDED
    settled(laboratory)
