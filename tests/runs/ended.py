"""Arranging attempts that have ended, on record, and of which nothing has been collected."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from runs.jobs import lanes
from runs.jobs.collect import collect_attempt
from runs.models import Attempt, Run
from tests.factories_runs import Laboratory, dispatch, launch, watch_only
from tests.runs.attempts import folder_of, until
from workspaces.store import LocalStore

THREE_FILES = b"""
import json
for name in "abc":
    open(f"../outputs/{name}", "w").write(name * 1000)
with open("../events.jsonl", "a") as events:
    for body in (
        {"type": "artifact", "path": "b", "name": "the second", "kind": "model", "metadata": {}},
        {"type": "score", "benchmark": "accuracy", "metric": "accuracy", "value": 0.5},
    ):
        events.write(json.dumps(body) + "\\n")
"""


def exited(laboratory: Laboratory) -> tuple[Run, Attempt]:
    """A run whose program has ended, which nobody has looked at."""
    with laboratory.opened():
        run = launch(laboratory)
    dispatch(laboratory)
    with laboratory.opened():
        attempt = Attempt.objects.get(run=run)
    until(lambda: (folder_of(laboratory, attempt) / "state" / "exit.json").exists(), "the program's end")
    return run, attempt


def ended_attempt(laboratory: Laboratory) -> tuple[Run, Attempt]:
    """A run whose program has ended, on record, and of which nothing has been collected."""
    run, attempt = exited(laboratory)

    def is_closed() -> bool:
        watch_only(laboratory)
        with laboratory.opened():
            return Attempt.objects.get(run=run).ended_at is not None

    until(is_closed, "the end on record")
    return run, attempt


def putting(monkeypatch: pytest.MonkeyPatch, before: Callable[[int, bytes], None]) -> list[bytes]:
    """Call `before` with number and content of each file that the store is given; the contents that it has taken."""
    put, seen = LocalStore.put_stream, []
    numbers = iter(range(1, 10_000))

    def put_stream(self: LocalStore, workspace_id: Any, chunks: Iterable[bytes]) -> tuple[str, int]:
        whole = b"".join(chunks)
        before(next(numbers), whole)
        seen.append(whole)
        return put(self, workspace_id, iter([whole]))

    monkeypatch.setattr(LocalStore, "put_stream", put_stream)
    return seen


def fresh(laboratory: Laboratory, run: Run) -> Run:
    with laboratory.opened():
        return Run.objects.get(pk=run.pk)


def collect_late(laboratory: Laboratory, attempt: Attempt) -> None:
    """What the sweep rings for a folder that was kept."""
    collect_attempt(workspace_id=laboratory.workspace.pk.hex, subject_id=attempt.pk.hex)
    assert lanes.wait(60, lanes.Work.COLLECT)
