"""A worker that looked in vain rests before it looks again, while its bell still hangs: who rings meanwhile rings no second one."""

import time
import uuid
from typing import Any

import pytest

from runs import queue
from runs.jobs import job as jobs
from runs.jobs.dispatch import REST, dispatch_run
from runs.jobs.job import job
from runs.jobs.rest import Rest
from tests.factories_runs import make_laboratory
from workspaces.access import Actor

SECONDS = 0.05


def took(rest: Rest) -> float:
    begun = time.monotonic()
    rest.take()
    return time.monotonic() - begun


def test_a_rest_is_taken_once_it_is_earned_and_is_over_by_itself() -> None:
    rest = Rest(SECONDS)
    assert took(rest) < SECONDS / 2, "nothing was in vain yet"
    rest.earn()
    assert SECONDS / 2 < took(rest) < 10 * SECONDS
    assert took(rest) < SECONDS / 2, "it is over"


@pytest.mark.django_db(transaction=True)
def test_a_worker_rests_while_its_bell_hangs_and_whoever_calls_the_job_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    laboratory = make_laboratory()
    told: list[str] = []

    class Told(Rest):
        def take(self) -> None:
            told.append("rested")

    def nothing(actor: Actor, subject_id: uuid.UUID) -> None:
        told.append("looked")

    monkeypatch.setattr(queue, "heard", lambda *_, **__: told.append("heard"))
    asked: dict[str, Any] = {"workspace_id": laboratory.workspace.pk.hex, "subject_id": laboratory.workspace.pk.hex}
    run = job(nothing, rest=Told(SECONDS))
    run(**asked)
    assert told == ["heard", "looked"]
    told.clear()
    monkeypatch.setattr(jobs, "get_current_job", lambda: type("Job", (), {"id": "one"})())
    run(**asked)
    assert told == ["rested", "heard", "looked"]


@pytest.mark.django_db(transaction=True)
def test_a_dispatcher_that_finds_an_empty_queue_has_earned_its_rest() -> None:
    key = make_laboratory().workspace.pk.hex
    dispatch_run(workspace_id=key, subject_id=key)
    assert took(REST) > 0.01
