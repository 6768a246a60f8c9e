"""A pool that answers one question and not the next: nothing is taken for read that was not. On the real local pool, whose answers are kept
back."""

import errno
import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from labsite.owner import as_owner
from runs.jobs import collect as collecting
from runs.lifecycle import RunStatus
from runs.models import Attempt, Evaluation, Run, Watch
from runs.place import place_of
from runs.pools.base import NoAnswer, NotPlain, PoolError
from runs.pools.folder import list_outputs, read_piece
from runs.pools.local import LocalPool
from tests.factories_runs import Laboratory, collect, dispatch, drive, launch, make_laboratory, watch, watch_only
from tests.runs.attempts import kept, settled, watch_until
from tests.runs.ended import ended_attempt, exited, fresh

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.pool]

SAYS = b"""
import json, sys
print("a word", file=sys.stderr)
with open("../events.jsonl", "a") as events:
    for body in ({"type": "score", "benchmark": "accuracy", "metric": "accuracy", "value": 0.5}, {"type": "done", "status": "ok"}):
        events.write(json.dumps(body) + "\\n")
"""


def silent_once(monkeypatch: pytest.MonkeyPatch, name: str, fault: PoolError) -> list[str]:
    """The next question about this file is not answered; the list says that it was asked."""
    read, asked = LocalPool.read, list[str]()

    def answer(self: LocalPool, workspace: str, key: str, asked_for: str, **more: Any) -> bytes:
        if asked_for == name and not asked:
            asked.append(asked_for)
            raise fault
        return read(self, workspace, key, asked_for, **more)

    monkeypatch.setattr(LocalPool, "read", answer)
    return asked


@pytest.mark.parametrize("fault", [NoAnswer("all 8 sessions are in use"), PoolError("shows another host key than the one pinned")])
@pytest.mark.parametrize("name", ["events.jsonl", "metrics.jsonl"])
def test_an_end_is_not_put_on_record_before_its_last_lines_are_read(name: str, fault: PoolError, monkeypatch: pytest.MonkeyPatch) -> None:
    laboratory = make_laboratory(code=SAYS)
    run, attempt = exited(laboratory)
    asked = silent_once(monkeypatch, name, fault)
    watch_only(laboratory)
    assert asked == [name]
    with laboratory.opened():
        seen = Watch.objects.get(attempt=attempt)
        assert Attempt.objects.get(pk=attempt.pk).ended_at is None, "what was not heard was taken for the end"
        assert (seen.observed, seen.observed_reason, seen.bad_lines) == ("unknown", fault.reason, [])
    watch(laboratory)
    assert fresh(laboratory, run).status == RunStatus.SUCCEEDED
    with laboratory.opened():
        assert Evaluation.objects.get(run=run).value == 0.5
    settled(laboratory)


def test_a_log_that_is_not_answered_for_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    laboratory = make_laboratory(code=SAYS)
    run, attempt = ended_attempt(laboratory)
    monkeypatch.setattr(collecting, "RETRY_SECONDS", 0)
    asked = silent_once(monkeypatch, "stderr.log", NoAnswer("it has not answered others yet"))
    collect(laboratory)
    assert (asked, fresh(laboratory, run).status) == (["stderr.log"], RunStatus.RUNNING)
    collect(laboratory)
    assert fresh(laboratory, run).status == RunStatus.SUCCEEDED
    with laboratory.opened():
        assert f".labsite/attempt-{attempt.number}/stderr.log" in kept(run)


@pytest.mark.parametrize(("number", "is_passing"), [(errno.EIO, True), (errno.ESTALE, True), (errno.EMFILE, True), (errno.ELOOP, False)])
def test_a_file_system_that_has_gone_says_nothing_of_the_file(
    number: int, is_passing: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    here = os.open

    def fails(path: Any, *more: Any, **asked: Any) -> int:
        if path == "events.jsonl":
            raise OSError(number, os.strerror(number))
        return here(path, *more, **asked)

    monkeypatch.setattr(os, "open", fails)
    with pytest.raises(PoolError) as caught:
        read_piece(tmp_path, ("events.jsonl",), frozenset({os.geteuid()}), offset=0, limit=10)
    assert isinstance(caught.value, NotPlain) is not is_passing


@pytest.mark.parametrize(("number", "is_passing"), [(errno.EIO, True), (errno.ESTALE, True), (errno.EACCES, False)])
def test_outputs_that_cannot_be_listed_now_are_not_left(
    number: int, is_passing: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "outputs" / "deep").mkdir(parents=True)
    here = os.open

    def fails(path: Any, *more: Any, **asked: Any) -> int:
        if path == "deep":
            raise OSError(number, os.strerror(number))
        return here(path, *more, **asked)

    monkeypatch.setattr(os, "open", fails)
    if is_passing:
        with pytest.raises(PoolError, match="just now"):
            list_outputs(tmp_path, frozenset({os.geteuid()}))
    else:
        assert list_outputs(tmp_path, frozenset({os.geteuid()})).left == {"closed": (1, "deep")}


# --- Starting -------------------------------------------------------------------------------------------------------------------------------


def claimed(laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch) -> tuple[Run, Attempt]:
    """A run that was claimed and of which the pool has never heard."""

    def unheard(self: LocalPool, order: Any) -> None:
        raise NoAnswer("cannot be reached")

    with laboratory.opened():
        run = launch(laboratory)
    monkeypatch.setattr(LocalPool, "submit", unheard)
    dispatch(laboratory)
    with laboratory.opened():
        return run, Attempt.objects.get(run=run)


def aged(laboratory: Laboratory, attempt: Attempt, *, created: int, missing: int | None) -> None:
    now = timezone.now()
    with as_owner(), laboratory.opened():
        Attempt.objects.filter(pk=attempt.pk).update(created_at=now - timedelta(seconds=created))
        since = None if missing is None else now - timedelta(seconds=missing)
        Watch.objects.filter(attempt=attempt).update(missing_since=since, lease_until=now - timedelta(seconds=1))


@pytest.mark.parametrize("missing", [None, 3600], ids=["silent-until-now", "nobody-looked"])
def test_after_an_outage_what_was_claimed_starts(missing: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host that was away for an hour, or labsite itself: nobody has asked for the run since."""
    submit = LocalPool.submit
    laboratory = make_laboratory(code=SAYS)
    run, attempt = claimed(laboratory, monkeypatch)
    aged(laboratory, attempt, created=3600, missing=missing)
    monkeypatch.setattr(LocalPool, "submit", submit)
    watch_until(laboratory, run, RunStatus.SUCCEEDED)
    settled(laboratory)


def test_a_pool_that_starts_nothing_for_a_quarter_of_an_hour_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    laboratory = make_laboratory(code=SAYS)
    run, attempt = claimed(laboratory, monkeypatch)
    aged(laboratory, attempt, created=3600, missing=890)
    watch(laboratory)
    assert fresh(laboratory, run).status == RunStatus.STARTING
    aged(laboratory, attempt, created=3600, missing=910)
    watch(laboratory)
    found = fresh(laboratory, run)
    assert (found.status, found.reason_code) == (RunStatus.FAILED, "could_not_start")
    settled(laboratory)


def test_what_its_engine_takes_out_of_a_long_queue_goes_back_to_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray fails what has waited for a quarter of an hour, Slurm may preempt what waits: the end says cancelled, and nobody here asked."""
    submit = LocalPool.submit
    laboratory = make_laboratory(code=SAYS)
    run, attempt = claimed(laboratory, monkeypatch)
    monkeypatch.setattr(LocalPool, "submit", submit)
    with laboratory.opened():
        place_of(attempt).cancel(laboratory.workspace.pk.hex, attempt.key, grace_seconds=0)  # bars it, as such an end does
    aged(laboratory, attempt, created=1000, missing=None)
    watch(laboratory)
    assert fresh(laboratory, run).status == RunStatus.QUEUED
    assert drive(laboratory, run).status == RunStatus.SUCCEEDED
    settled(laboratory)
