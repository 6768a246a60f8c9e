"""What an ended attempt left is collected beside everything else, goes on where it was cut off, and ends its run once, whatever stands in the
way. On the real local pool and the real store."""

import os
import threading
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import django_rq
import pytest
from django.conf import settings
from django.test import Client
from django.utils import timezone

from labsite.clock import Clock
from runs.commands.run import cancel_run
from runs.jobs import keeper, lease
from runs.lifecycle import RunStatus
from runs.models import Artifact, Attempt, Evaluation, KeptFile, Watch
from tests.factories_runs import Laboratory, collect, drive, make_laboratory, watch_only
from tests.runs.attempts import WAITS, content, dies, folder_of, in_threads, kept, settled, started, until
from tests.runs.ended import THREE_FILES, ended_attempt, fresh, putting
from workspaces import store
from workspaces.audit import Refusal
from workspaces.models import AuditEvent
from workspaces.store import LocalStore

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.pool]

MEGABYTE = 2**20


def test_while_outputs_are_collected_another_run_is_cancelled_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """300 MB of outputs, whose collecting stands still until the other run is cancelled: nothing but the collector waits for the store."""
    code = b"""
import json, os, time
if json.load(open(os.environ["LABSITE_JOB"]))["seed"] == 7:
    print("here", flush=True)
    time.sleep(60)
open("../outputs/big", "wb").truncate(300 * 2**20)
"""
    laboratory = make_laboratory(code=code, slots=1, engine_slots=1)
    run, _ = ended_attempt(laboratory)
    beginning, go_on = threading.Event(), threading.Event()
    put = LocalStore.put_stream

    def slow(self: LocalStore, workspace_id: Any, chunks: Iterable[bytes]) -> tuple[str, int]:
        def pieces() -> Iterator[bytes]:
            for piece in chunks:
                yield piece
                beginning.set()
                assert go_on.wait(30), "the other run was not cancelled meanwhile"

        return put(self, workspace_id, pieces())

    monkeypatch.setattr(LocalStore, "put_stream", slow)
    raised: list[list[BaseException]] = []
    collector = threading.Thread(target=lambda: raised.append(in_threads(1, lambda: collect(laboratory))))
    collector.start()
    assert beginning.wait(10)
    monkeypatch.setattr(LocalStore, "put_stream", put)
    other, attempt = started(laboratory, seed=7)  # in the only slot, which the collected run has left
    with laboratory.opened():
        cancel_run(actor=laboratory.owner, run=other)

    def is_closed() -> bool:
        watch_only(laboratory)
        with laboratory.opened():
            return Attempt.objects.get(pk=attempt.pk).ended_at is not None

    until(is_closed, "the cancel is carried out", seconds=3)
    assert fresh(laboratory, run).status == RunStatus.RUNNING
    go_on.set()
    collector.join(30)
    assert raised == [[]]
    assert fresh(laboratory, run).status == RunStatus.SUCCEEDED
    with laboratory.opened():
        assert Artifact.objects.get(run=run, path="big").blob.bytes == 300 * MEGABYTE
    assert drive(laboratory, other).status == RunStatus.CANCELLED
    settled(laboratory)


@dies
def test_a_collector_that_dies_between_two_files_goes_on_behind_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    laboratory = make_laboratory(code=THREE_FILES)
    run, attempt = ended_attempt(laboratory)
    deaths = [b"b" * 1000]

    def die(number: int, whole: bytes) -> None:
        if whole in deaths:
            deaths.remove(whole)
            raise SystemExit  # ends the thread in the midst

    seen = putting(monkeypatch, die)
    collect(laboratory)
    with laboratory.opened():
        Watch.objects.update(lease_until=timezone.now() + timedelta(seconds=60))  # as kill -9 leaves it
    collect(laboratory)
    assert fresh(laboratory, run).status == RunStatus.RUNNING, "another one's lease was not respected"
    with laboratory.opened():
        Watch.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    collect(laboratory)
    assert fresh(laboratory, run).status == RunStatus.SUCCEEDED
    assert sorted(whole for whole in seen if len(whole) == 1000) == [b"a" * 1000, b"b" * 1000, b"c" * 1000], "a file was stored twice"
    with laboratory.opened():
        assert {"a", "b", "c"} <= set(kept(run))
        second = Artifact.objects.get(run=run, path="b")
        assert (second.name, second.kind) == ("the second", "model")
        assert Evaluation.objects.get(run=run).value == 0.5
        assert not KeptFile.objects.exists()
    assert not folder_of(laboratory, attempt).exists()
    settled(laboratory)


@dies
def test_a_file_that_the_store_has_lost_meanwhile_is_stored_again(monkeypatch: pytest.MonkeyPatch) -> None:
    laboratory = make_laboratory(code=THREE_FILES)
    run, _ = ended_attempt(laboratory)
    cuts = [b"c" * 1000]

    def cut(number: int, whole: bytes) -> None:
        if whole in cuts:
            cuts.remove(whole)
            raise SystemExit

    putting(monkeypatch, cut)
    collect(laboratory)
    with laboratory.opened():
        first = KeptFile.objects.get(path="a")
        path = store.local_path("local", laboratory.workspace.pk, first.sha256)
        assert path is not None
        path.unlink()
    collect(laboratory)
    assert fresh(laboratory, run).status == RunStatus.SUCCEEDED
    with laboratory.opened():
        assert content(laboratory, run, "a") == b"a" * 1000
    settled(laboratory)


def test_a_watcher_that_comes_late_keeps_no_collector_away() -> None:
    laboratory = make_laboratory(code=THREE_FILES)
    run, attempt = ended_attempt(laboratory)
    with laboratory.opened():
        assert not lease.take(attempt.pk, is_collecting=False)
    collect(laboratory)
    assert fresh(laboratory, run).status == RunStatus.SUCCEEDED
    with laboratory.opened():
        held = lease.take(attempt.pk, is_collecting=True)
        assert held is not None
        lease.release(replace(held, fence=held.fence - 1))
        assert Watch.objects.get(attempt=attempt).lease_until is not None, "a watcher let go of a collector's lease"
        lease.release(held)


def test_two_collectors_at_once_end_a_run_once() -> None:
    laboratory = make_laboratory(code=THREE_FILES)
    runs = [ended_attempt(laboratory)[0] for _ in range(3)]

    def work() -> None:
        for _ in range(3):
            with laboratory.opened():
                Watch.objects.update(lease_until=None)  # as if each lease were over
            collect(laboratory)

    assert in_threads(3, work) == []
    for run in runs:
        assert fresh(laboratory, run).status == RunStatus.SUCCEEDED
        with laboratory.opened():
            assert AuditEvent.objects.filter(verb="run.ended", subjects__object_id=run.pk).distinct().count() == 1
    settled(laboratory)


def test_what_is_being_collected_cannot_be_cancelled_and_the_clock_rings_for_it(client: Client) -> None:
    laboratory = make_laboratory(code=THREE_FILES)
    run, _ = ended_attempt(laboratory)
    with laboratory.opened(), pytest.raises(Refusal, match="what it left is being collected"):
        cancel_run(actor=laboratory.owner, run=run)
    assert laboratory.owner.user is not None
    client.force_login(laboratory.owner.user)
    page = client.get(f"/workspaces/{laboratory.workspace.slug}/runs/{run.public_id}/").content.decode()
    assert "what it left is being collected" in page
    for name in settings.QUEUES:  # other tests have rung here too, and a queue that is behind is left alone
        django_rq.get_queue(name).empty()  # type: ignore[no-untyped-call]  # rq carries no types here
    rung = {name for name, workspace in Clock().tick() if workspace == laboratory.workspace.pk}
    assert "collect_attempt" in rung
    assert "watch_attempts" not in rung
    collect(laboratory)
    rung = {name for name, workspace in Clock().tick() if workspace == laboratory.workspace.pk}
    assert "collect_attempt" not in rung
    settled(laboratory)


def test_a_run_that_would_be_tried_again_can_be_cancelled_while_its_log_is_collected() -> None:
    laboratory = make_laboratory(code=WAITS)
    run, attempt = started(laboratory)
    os.kill(int(read_launcher(laboratory, attempt)), 9)

    def is_closed() -> bool:
        watch_only(laboratory)
        with laboratory.opened():
            return Attempt.objects.get(pk=attempt.pk).ended_at is not None

    until(is_closed, "the loss on record")
    with laboratory.opened():
        cancel_run(actor=laboratory.owner, run=run)
    collect(laboratory)
    assert fresh(laboratory, run).status == RunStatus.CANCELLED
    with laboratory.opened():
        assert Attempt.objects.filter(run=run).count() == 1
        assert content(laboratory, run, ".labsite/attempt-1/stdout.log") == b"waiting\n"
    settled(laboratory)


def read_launcher(laboratory: Laboratory, attempt: Attempt) -> str:
    text = (folder_of(laboratory, attempt) / "state" / "lock").read_text()
    return text.partition('"pid": ')[2].partition(",")[0]


def test_many_files_take_turns_with_those_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeper, "TURN_SECONDS", 0)
    laboratory = make_laboratory(code=THREE_FILES)
    first, second = (ended_attempt(laboratory)[0] for _ in range(2))
    collect(laboratory)
    with laboratory.opened():
        assert [KeptFile.objects.filter(attempt__run=run).count() for run in (first, second)] == [1, 1]
        assert set(Watch.objects.values_list("collect_tries", "lease_until")) == {(0, None)}
    for _ in range(6):
        collect(laboratory)
    for run in (first, second):
        assert (fresh(laboratory, run).status, fresh(laboratory, run).reason) == (RunStatus.SUCCEEDED, "")
        with laboratory.opened():
            assert {"a", "b", "c"} <= set(kept(run))
    settled(laboratory)
