"""Runs that end before their time: cancelled, out of time, interrupted. The page never says so while work runs, and the charge stays within."""

import json
import os
import signal
import threading
import time
from typing import Any

import pytest
from django.core.management import call_command

from runs.commands.run import cancel_run
from runs.jobs import dispatch as dispatching
from runs.jobs import watch as watching
from runs.lifecycle import RunStatus
from runs.models import Artifact, Attempt, Run
from runs.pools.processes import is_alive
from tests.factories_registry import make_agent_version
from tests.factories_runs import HOUR, dispatch, drive, launch, make_laboratory, watch
from tests.runs.attempts import DEAF, WAITS, content, folder_of, in_threads, kept, let_go, levels, settled, started, until
from workspaces.audit import Refusal
from workspaces.commands.pool import unbind_pool
from workspaces.models import AuditEvent, EngineSlot, Pool

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.pool]

OVERSPENDS = (
    b"""
with open("../events.jsonl", "w") as events:
    events.write('{"type": "api_spend", "micros": 5000000, "currency": "EUR", "what": "judge"}\\n')
"""
    + WAITS
)  # nothing is reserved for it


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

    def cancel_first(actor: Any, attempt: Attempt, fence: int) -> None:
        cancel_run(actor=laboratory.owner, run=run)
        submit(actor, Attempt.objects.select_related("pool__engine", "run").get(pk=attempt.pk), fence)

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


@pytest.mark.parametrize("hours", [-1, 1])
def test_a_clock_that_is_off_over_there_makes_no_run_free(hours: int) -> None:
    """What it took is charged all the same: else a run that is interrupted there would have its whole time again, each time."""
    laboratory = make_laboratory(code=b"import time; print(1, flush=True); time.sleep(1)")
    run, attempt = started(laboratory)
    end = folder_of(laboratory, attempt) / "state" / "exit.json"
    until(end.exists, "the end")
    said = json.loads(end.read_text())
    end.write_text(json.dumps({**said, "started_at": said["started_at"] + hours * 3600, "ended_at": said["ended_at"] + hours * 3600}))
    done = drive(laboratory, run)
    assert 1000 <= done.spent_gpu_ms == pytest.approx((said["ended_at"] - said["started_at"]) * 1000, abs=2)
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


def test_labsite_that_stops_gives_no_run_back_that_has_spent_all_it_may() -> None:
    """Its watcher was ending it for that, or had yet to read it."""
    laboratory = make_laboratory(code=OVERSPENDS)
    run, attempt = started(laboratory)
    call_command("interrupt_local")
    with laboratory.opened():
        run.refresh_from_db()
        assert run.status != RunStatus.QUEUED
    done = drive(laboratory, run)
    assert (done.status, done.reason_code) == (RunStatus.FAILED, "budget_exceeded")
    with laboratory.opened():
        assert list(Attempt.objects.filter(run=run).values_list("pk", flat=True)) == [attempt.pk], "it was started once more"
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


@pytest.mark.django_db(transaction=True)
def test_a_run_that_failed_says_the_last_words_of_its_program() -> None:
    laboratory = make_laboratory(
        code=b"import sys\nprint('all is well')\nsys.exit('refused: no train table among the inputs\\x07\\n\\n')\n"
    )
    with laboratory.opened():
        run = launch(laboratory)
    done = drive(laboratory, run)
    assert done.status == "failed"
    assert done.reason == "The program ended with exit code 1. It said: refused: no train table among the inputs"


def test_a_bundle_without_its_package_says_which_one_is_missing() -> None:
    laboratory = make_laboratory(code=b"import no_such_package\n")
    with laboratory.opened():
        run = launch(laboratory)
    done = drive(laboratory, run)
    assert done.status == "failed"
    assert "No module named 'no_such_package'" in done.reason


def test_what_runs_on_a_pool_that_is_unbound_goes_on_to_its_end_and_nothing_new_starts() -> None:
    laboratory = make_laboratory(code=WAITS, slots=1)
    run, attempt = started(laboratory)
    with laboratory.opened():
        waiting = launch(laboratory)
        unbind_pool(actor=laboratory.owner, pool=Pool.objects.get(), reason="repairs")
        with pytest.raises(Refusal, match="local takes no new work"):
            launch(laboratory, pool="local")
    dispatch(laboratory)
    watch(laboratory)
    with laboratory.opened():
        run.refresh_from_db()
        assert run.status == RunStatus.RUNNING
    let_go(laboratory, run)
    assert drive(laboratory, run).status == RunStatus.SUCCEEDED
    dispatch(laboratory)
    with laboratory.opened():
        assert list(Attempt.objects.values_list("pk", flat=True)) == [attempt.pk], "a run was started on a pool that takes no work"
        waiting.refresh_from_db()
        assert waiting.status == RunStatus.QUEUED


SCORES = b"""
import json, os
open("../outputs/model" + os.environ["LABSITE_RUN"][-8:] + ".bin", "w").write("weights")
with open("../events.jsonl", "a") as file:
    file.write(json.dumps({"type": "score", "benchmark": "accuracy", "metric": "accuracy", "value": 0.5}) + "\\n")
"""


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("kind", "read", "is_credited"), [("train", 1, False), ("evaluate", 1, True), ("evaluate", 2, False)])
def test_a_score_is_one_of_what_an_evaluating_run_has_measured_alone(kind: str, read: int, is_credited: bool) -> None:
    laboratory = make_laboratory(code=SCORES)
    made = []
    for _ in range(read):
        with laboratory.opened():
            run = launch(laboratory)
        drive(laboratory, run)
        with laboratory.opened():
            made.append(Artifact.objects.get(run=run, path__startswith="model"))
    with laboratory.opened():
        make_agent_version(laboratory.owner, "judge", code=SCORES, kind=kind)
        run = launch(laboratory, agent="judge", artifacts=tuple(artifact.public_id for artifact in made))
    drive(laboratory, run)
    with laboratory.opened():
        assert run.evaluations.get().subject_artifact == (made[0] if is_credited else None)
