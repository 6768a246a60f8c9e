"""The doorbell, on a real Valkey with a real worker: a bell is rung once while it waits, and is heard again when it rings during the work."""

import uuid
from collections.abc import Iterator

import django_rq
import pytest
from django.db import transaction
from rq import Queue, SimpleWorker
from rq.serializers import JSONSerializer

from runs import queue
from runs.jobs.job import job
from tests.factories import make_workspace
from workspaces import scope
from workspaces.access import Actor
from workspaces.models import Workspace

heard: list[str] = []
rings_while_working: list[int] = []


@job
def count_bell(actor: Actor, subject_id: uuid.UUID) -> None:
    heard.append(actor.job_id)
    if rings_while_working:
        rings_while_working.pop()
        queue.ring("count_bell", subject=subject_id)


@pytest.fixture
def bells(monkeypatch: pytest.MonkeyPatch) -> Iterator[Queue]:
    monkeypatch.setitem(queue.JOBS, "count_bell", ("default", f"{__name__}.count_bell"))
    heard.clear()
    rings_while_working.clear()
    waiting = django_rq.get_queue("default", serializer=JSONSerializer)
    drop(waiting)
    yield waiting
    drop(waiting)


def drop(bells: Queue) -> None:
    for job_id in bells.get_job_ids():
        bells.remove(job_id)


@pytest.fixture
def workspace(transactional_db: None) -> Workspace:
    return make_workspace()[0]


def ring(workspace: Workspace) -> None:
    with scope.open_workspace(workspace.pk):
        queue.ring("count_bell", subject=workspace.pk)


def work(bells: Queue) -> None:
    SimpleWorker([bells], connection=bells.connection, serializer=JSONSerializer).work(burst=True, logging_level="ERROR")


def test_a_bell_that_waits_is_rung_once(bells: Queue, workspace: Workspace) -> None:
    for _ in range(5):
        ring(workspace)
    assert bells.count == 1
    work(bells)
    assert len(heard) == 1
    ring(workspace)
    work(bells)
    assert len(heard) == 2, "a bell that was heard rings anew"


def test_a_bell_rung_while_its_job_works_is_not_lost(bells: Queue, workspace: Workspace) -> None:
    rings_while_working.append(1)
    ring(workspace)
    work(bells)
    assert len(heard) == 2
    assert len(set(heard)) == 2, "each bell is a job of its own"
    assert bells.failed_job_registry.count == 0


def test_what_is_rolled_back_rings_nothing(bells: Queue, workspace: Workspace) -> None:
    with scope.open_workspace(workspace.pk), transaction.atomic():
        queue.ring("count_bell", subject=workspace.pk)
        transaction.set_rollback(True)
    assert bells.count == 0


def test_a_bell_whose_job_vanished_rings_again_after_a_while(bells: Queue, workspace: Workspace) -> None:
    ring(workspace)
    drop(bells)
    mark = queue._mark(f"count_bell-{workspace.pk.hex}")
    assert 0 < bells.connection.ttl(mark) <= queue.WAITING_SECONDS
    bells.connection.delete(mark)  # as its time runs out
    ring(workspace)
    assert bells.count == 1
