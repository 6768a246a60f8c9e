"""What cannot be collected ends its run all the same, once, with what could be kept and a sentence why; the rest comes later. On the real store."""

import os
import subprocess
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.utils import timezone

from labsite.owner import as_owner
from runs.commands.ending import finish_run
from runs.jobs import collect as collecting
from runs.jobs.keeper import Keeper
from runs.jobs.tidy import tidy_workspace
from runs.lifecycle import RunStatus
from runs.models import Evaluation, MemoryEntry, Run, Watch
from runs.pools.base import PoolError
from runs.pools.local import LocalPool
from runs.queries.collecting import kept_back
from tests.factories_pages import client_of
from tests.factories_registry import make_benchmark
from tests.factories_runs import collect, make_laboratory
from tests.runs.attempts import content, dies, folder_of, kept, settled
from tests.runs.ended import THREE_FILES, collect_late, ended_attempt, fresh, putting
from workspaces.commands.benchmark import publish_contract
from workspaces.models import AgentVersion, AuditEvent, Benchmark, EngineSlot
from workspaces.store import StoreFull

SAYS_MORE = b"""
with open("../events.jsonl", "a") as events:
    events.write(json.dumps({"type": "score", "benchmark": "speed", "metric": "accuracy", "value": 3}) + chr(10))
    events.write(json.dumps({"type": "memory_write", "collection": "c", "kind": "finding", "body": "slower is better"}) + chr(10))
"""
DONE = b'open(\'../events.jsonl\', \'a\').write(\'{"type": "done", "status": "ok"}\\n\')\n'
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.pool]


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give up at the second try, and try again at once."""
    monkeypatch.setattr(collecting, "PATIENCE_SECONDS", 0)
    monkeypatch.setattr(collecting, "MIN_TRIES", 2)
    monkeypatch.setattr(collecting, "RETRY_SECONDS", 0)
    monkeypatch.setattr(collecting, "LATE_RETRY_SECONDS", 0)


@pytest.mark.skipif(os.geteuid() != 0, reason="a small disk of its own needs a mount: run as root")
def test_a_full_disk_ends_the_run_with_what_has_room_and_the_rest_comes_later(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, impatient: None
) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", str(disk)], check=True)
    try:
        monkeypatch.setattr(settings, "LABSITE_REGIONS", {**settings.LABSITE_REGIONS, "local": disk / "store"})
        (disk / "store").mkdir()
        code = b"import os\nfor name in 'abcd':\n    open(f'../outputs/{name}', 'wb').write(os.urandom(2 * 2**20))\n"
        laboratory = make_laboratory(code=code)
        run, attempt = ended_attempt(laboratory)
        collect(laboratory)
        waiting = fresh(laboratory, run)
        assert (waiting.status, waiting.spent_gpu_ms > 0) == (RunStatus.RUNNING, True)
        with laboratory.opened():
            assert not EngineSlot.objects.exists()
        tidy_workspace(workspace_id=laboratory.workspace.pk.hex, subject_id=laboratory.workspace.pk.hex)
        assert folder_of(laboratory, attempt).exists(), "what is still to be collected was removed"
        collect(laboratory)
        done = fresh(laboratory, run)
        assert done.status == RunStatus.SUCCEEDED
        assert "no room left" in done.reason
        with laboratory.opened():
            assert {"a", "b"} <= set(kept(run)) < {"a", "b", "c", "d", ".labsite/attempt-1/stdout.log"}
            assert not list((disk / "store" / laboratory.workspace.pk.hex / "incoming").iterdir())
        settled(laboratory)
        collect_late(laboratory, attempt)
        assert (fresh(laboratory, run).reason, folder_of(laboratory, attempt).exists()) == (done.reason, True)

        subprocess.run(["mount", "-o", "remount,size=64m", str(disk)], check=True)
        collect_late(laboratory, attempt)
        late = fresh(laboratory, run)
        assert (late.status, late.ended_at, late.spent_gpu_ms) == (done.status, done.ended_at, done.spent_gpu_ms)
        assert late.reason == "Some of its outputs were collected later."
        with laboratory.opened():
            assert {"a", "b", "c", "d"} <= set(kept(run))
            assert AuditEvent.objects.filter(verb="run.outputs_collected").count() == 1
        assert not folder_of(laboratory, attempt).exists()
        settled(laboratory)
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_one_file_that_cannot_be_read_keeps_none_of_the_others(monkeypatch: pytest.MonkeyPatch, impatient: None) -> None:
    laboratory = make_laboratory(code=THREE_FILES)
    run, attempt = ended_attempt(laboratory)
    opened = LocalPool.open_output

    def broken(self: LocalPool, workspace: str, key: str, path: str) -> Any:
        if path == "b":
            raise PoolError("input/output error")
        return opened(self, workspace, key, path)

    with monkeypatch.context() as patched:
        patched.setattr(LocalPool, "open_output", broken)
        collect(laboratory)
        done = fresh(laboratory, run)
        assert (done.status, done.reason.startswith("Not all outputs could be collected: 1 file")) == (RunStatus.SUCCEEDED, True)
        with laboratory.opened():
            assert {"a", "c"} == {path for path in kept(run) if "/" not in path}
        tidy_workspace(workspace_id=laboratory.workspace.pk.hex, subject_id=laboratory.workspace.pk.hex)
        collect_late(laboratory, attempt)
        assert folder_of(laboratory, attempt).exists()
    collect_late(laboratory, attempt)
    with laboratory.opened():
        assert content(laboratory, run, "b") == b"b" * 1000
        assert AuditEvent.objects.filter(verb="run.outputs_collected").count() == 1
    assert not folder_of(laboratory, attempt).exists()
    collect_late(laboratory, attempt)  # once more is harmless
    settled(laboratory)


@dies
def test_a_folder_that_vanished_ends_the_run_with_what_was_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collecting, "MISSING_GRACE_SECONDS", 0)
    laboratory = make_laboratory(code=THREE_FILES)
    run, attempt = ended_attempt(laboratory)

    def cut(number: int, whole: bytes) -> None:
        if whole == b"b" * 1000:
            folder_of(laboratory, attempt).rename(folder_of(laboratory, attempt).with_name("away"))
            raise SystemExit  # ends the thread in the midst

    putting(monkeypatch, cut)
    collect(laboratory)
    collect(laboratory)
    done = fresh(laboratory, run)
    assert (done.status, done.reason) == (RunStatus.SUCCEEDED, "Not all outputs could be collected: the run folder is gone.")
    with laboratory.opened():
        assert "a" in kept(run)
        assert "b" not in kept(run)
        assert Evaluation.objects.get(run=run).value == 0.5
    settled(laboratory)


@pytest.mark.parametrize("where", ["keep_outputs", "finish_run"])
def test_what_no_one_foresaw_does_not_hold_the_run_for_ever(monkeypatch: pytest.MonkeyPatch, impatient: None, where: str) -> None:
    laboratory = make_laboratory(code=THREE_FILES)
    run, attempt = ended_attempt(laboratory)
    finish = finish_run

    def broken(*_: object, **given: Any) -> Run:
        if where == "finish_run" and not given["harvest"].artifacts:
            return finish(**given)
        raise ZeroDivisionError("as no one foresaw")

    monkeypatch.setattr(Keeper if where == "keep_outputs" else collecting, where, broken)
    collect(laboratory)
    assert fresh(laboratory, run).is_active, "it is tried again for a while"
    collect(laboratory)
    done = fresh(laboratory, run)
    assert (done.status, "ZeroDivisionError" in done.reason) == (RunStatus.SUCCEEDED, True)
    tidy_workspace(workspace_id=laboratory.workspace.pk.hex, subject_id=laboratory.workspace.pk.hex)
    assert (folder_of(laboratory, attempt) / "outputs" / "a").exists(), "what was not collected is lost"
    settled(laboratory)


def test_a_run_that_said_it_was_done_has_succeeded_although_nothing_of_it_can_be_recorded(
    monkeypatch: pytest.MonkeyPatch, impatient: None
) -> None:
    laboratory = make_laboratory(code=THREE_FILES + DONE)
    with as_owner(), laboratory.opened():
        AgentVersion.objects.update(completion="done")
    run, _ = ended_attempt(laboratory)

    def broken(**given: Any) -> Run:
        if not given["harvest"].is_bare:
            raise ZeroDivisionError("as no one foresaw")
        return finish_run(**given)

    monkeypatch.setattr(collecting, "finish_run", broken)
    for _ in range(2):
        collect(laboratory)
    assert fresh(laboratory, run).status == RunStatus.SUCCEEDED
    settled(laboratory)


def test_a_run_that_ended_bare_has_its_scores_and_its_memory_later_and_once(monkeypatch: pytest.MonkeyPatch, impatient: None) -> None:
    laboratory = make_laboratory(code=THREE_FILES + SAYS_MORE)
    with laboratory.opened():
        make_benchmark(laboratory.owner, "speed")
    _, attempt = ended_attempt(laboratory)

    def broken(**given: Any) -> Run:
        if not given["harvest"].is_bare:
            raise ZeroDivisionError("as no one foresaw")
        return finish_run(**given)

    with monkeypatch.context() as patched:
        patched.setattr(collecting, "finish_run", broken)
        for _ in range(2):
            collect(laboratory)
    with laboratory.opened():
        assert not Evaluation.objects.exists()
        for benchmark in Benchmark.objects.all():
            publish_contract(actor=laboratory.owner, benchmark=benchmark, metric="recall", direction="minimize")
    for _ in range(2):
        collect_late(laboratory, attempt)
        with laboratory.opened():
            Watch.objects.update(lease_until=None, observed=Watch.FOLDER_KEPT)
            found = {
                row.benchmark.slug: (row.value, row.contract.version) for row in Evaluation.objects.select_related("benchmark", "contract")
            }
            assert found == {"accuracy": (0.5, 1), "speed": (3.0, 1)}, "under the contracts that held then"
            assert [entry.title for entry in MemoryEntry.objects.all()] == ["slower is better"]
    settled(laboratory)


@dies
def test_a_collector_that_dies_each_time_does_not_try_for_ever(monkeypatch: pytest.MonkeyPatch, impatient: None) -> None:
    monkeypatch.setattr(collecting, "MAX_TRIES", 3)
    laboratory = make_laboratory(code=THREE_FILES)
    run, _ = ended_attempt(laboratory)

    def die(number: int, whole: bytes) -> None:
        raise SystemExit

    putting(monkeypatch, die)
    for _ in range(3):
        collect(laboratory)
    assert fresh(laboratory, run).is_active
    collect(laboratory)
    done = fresh(laboratory, run)
    assert (done.status, "cut off 3 times" in done.reason) == (RunStatus.SUCCEEDED, True)
    settled(laboratory)


def test_a_store_that_is_full_says_so_to_the_collector(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before its patience is over a full store is no end: the run waits, and ends as it should once there is room."""
    monkeypatch.setattr(collecting, "RETRY_SECONDS", 0)
    laboratory = make_laboratory(code=THREE_FILES)
    run, _ = ended_attempt(laboratory)

    def full(number: int, whole: bytes) -> None:
        raise StoreFull(28, "There is no room left in the store.")

    with monkeypatch.context() as patched:
        putting(patched, full)
        for _ in range(5):
            collect(laboratory)
        assert fresh(laboratory, run).status == RunStatus.RUNNING
    collect(laboratory)
    done = fresh(laboratory, run)
    assert (done.status, done.reason) == (RunStatus.SUCCEEDED, "")
    settled(laboratory)


def test_files_that_are_never_taken_are_said_and_their_folder_stays_for_a_while() -> None:
    code = """
import os
os.chdir("../outputs")
for name in ("\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645.csv", "\U0001f469\u200d\U0001f52c.png", "no\u00a0break", "\u5168\u3000\u89d2"):
    open(name, "w").write("kept")
for name in ("line\\nbreak", "escape\\x1b[31m"):
    open(name, "w").write("work")
""".encode()
    laboratory = make_laboratory(code=code)
    run, attempt = ended_attempt(laboratory)
    collect(laboratory)
    done = fresh(laboratory, run)
    assert done.status == RunStatus.SUCCEEDED
    assert done.reason == (
        "Not all outputs could be collected: 2 files or folders have names that cannot be kept (the first: escape\\x1b[31m). "
        "The run folder stays in the pool for 14 days; whoever runs the pool can fetch them there."
    )
    with laboratory.opened():
        assert {"می\u200cخواهم.csv", "👩\u200d🔬.png", "no\xa0break", "全\u3000角"} == {path for path in kept(run) if "/" not in path}
        assert not kept_back().exists(), "nothing would come of another try"
    page = client_of(laboratory.owner).get(f"/workspaces/lab/runs/{run.public_id}/?tab=files").content.decode()
    assert "2 files or folders have names that cannot be kept" in page
    tidy_workspace(workspace_id=laboratory.workspace.pk.hex, subject_id=laboratory.workspace.pk.hex)
    assert (folder_of(laboratory, attempt) / "outputs" / "line\nbreak").exists(), "work was thrown away under a green word"
    with laboratory.opened():
        Watch.objects.filter(attempt=attempt).update(observed_at=timezone.now() - timedelta(days=15), lease_until=None)
    tidy_workspace(workspace_id=laboratory.workspace.pk.hex, subject_id=laboratory.workspace.pk.hex)
    assert not folder_of(laboratory, attempt).exists()
    settled(laboratory)


def test_a_collector_that_dies_before_it_leaves_the_folder_leaves_it_the_next_time(
    monkeypatch: pytest.MonkeyPatch, impatient: None
) -> None:
    laboratory = make_laboratory(code=THREE_FILES + b'open("../outputs/line\\nbreak", "w").write("work")\n')
    run, attempt = ended_attempt(laboratory)
    opened = LocalPool.open_output

    def broken(self: LocalPool, workspace: str, key: str, path: str) -> Any:
        if path == "b":
            raise PoolError("input/output error")
        return opened(self, workspace, key, path)

    def killed(*given: Any, **named: Any) -> None:
        raise OSError("killed")

    with monkeypatch.context() as patched:
        patched.setattr(LocalPool, "open_output", broken)
        collect(laboratory)
        collect(laboratory)
    with monkeypatch.context() as patched:
        patched.setattr(collecting, "_leave", killed)
        collect_late(laboratory, attempt)
    with laboratory.opened():
        assert content(laboratory, run, "b") == b"b" * 1000
        assert Watch.objects.get(attempt=attempt).observed == Watch.FOLDER_KEPT
        Watch.objects.filter(attempt=attempt).update(lease_until=None)
    collect_late(laboratory, attempt)
    with laboratory.opened():
        assert Watch.objects.get(attempt=attempt).observed == Watch.FOLDER_LEFT
    settled(laboratory)
