"""The only door to RQ. PostgreSQL is the truth and the queue a doorbell: a job carries ids, a lost bell is rung again by the clock."""

import secrets
import uuid
from functools import cache

import django_rq
import redis
import structlog
from django.conf import settings
from django.db import transaction
from rq import Retry

from workspaces import scope

log = structlog.get_logger(__name__)

# name -> (queue, dotted name of the job). Names, so that commands need not import jobs; a rule test imports each.
JOBS: dict[str, tuple[str, str]] = {
    "dispatch_run": ("dispatch", "runs.jobs.dispatch.dispatch_run"),
    "watch_attempts": ("watch", "runs.jobs.watch.watch_attempts"),
    "end_cancelled": ("default", "runs.jobs.cancel.end_cancelled"),
    "collect_attempt": ("collect", "runs.jobs.collect.collect_attempt"),
    "check_contracts": ("default", "runs.jobs.contract_check.check_contracts"),
    "decide_policies": ("default", "runs.jobs.decide.decide_policies"),
    "check_overlap": ("export", "runs.jobs.overlap.check_overlap"),  # long work that nobody waits for at a screen
    "make_export": ("export", "runs.jobs.export.make_export"),
    "read_import": ("export", "runs.jobs.dataset_import.read_import"),
    "seal_chain": ("default", "runs.jobs.seal.seal_chain"),
    "find_orphans": ("watch", "runs.jobs.orphans.find_orphans"),
    "advance_sweep": ("default", "runs.jobs.advance.advance_sweep"),
    "tidy_workspace": ("default", "runs.jobs.tidy.tidy_workspace"),
}

WAITING_SECONDS = 10  # so long a bell is taken to wait; then another may be rung beside it
KEPT_SECONDS = 24 * 3600  # a job that failed can be looked at


def ring(name: str, *, subject: uuid.UUID) -> None:
    """Ring a job for a thing of the open workspace once the transaction has committed. Twice is harmless; lost is repaired."""
    queue, function = JOBS[name]
    workspace_id, subject_id = scope.current_id().hex, subject.hex
    transaction.on_commit(lambda: _enqueue(queue, function, f"{name}-{subject_id}", workspace_id, subject_id))


def _enqueue(queue: str, function: str, bell: str, workspace_id: str, subject_id: str) -> None:
    """Put a job of its own into the queue, unless one that has not begun waits already: that one will read what was just committed.

    A job id is used once. Under one id for all bells, one rung while the job ran would be deleted with it.
    """
    try:
        connection = _connection(queue)
        if not connection.set(_mark(bell), 1, nx=True, ex=WAITING_SECONDS):
            return
        rq = django_rq.get_queue(queue, connection=connection, serializer="rq.serializers.JSONSerializer")
        rq.enqueue_call(
            function, kwargs={"workspace_id": workspace_id, "subject_id": subject_id}, job_id=f"{bell}-{secrets.token_hex(4)}",
            result_ttl=0, failure_ttl=KEPT_SECONDS, retry=Retry(max=2),
        )  # fmt: skip
    except redis.RedisError as error:
        # The row is committed; the clock rings again. A doorbell that is out must not turn a success into a failure.
        log.warning("bell not rung", job=bell, error=type(error).__name__)


def _connection(queue: str) -> redis.Redis:
    """One for all bells of a process: connecting costs more than ringing."""
    return _connected(queue, settings.RQ_QUEUES[queue]["URL"])


@cache
def _connected(queue: str, url: str) -> redis.Redis:
    return django_rq.get_connection(queue)


def heard(name: str, *, subject_id: str) -> None:
    """Said by a job before it reads anything: whatever changes from now on wants a bell of its own."""
    try:
        _connection(JOBS[name][0]).delete(_mark(f"{name}-{subject_id}"))
    except redis.RedisError as error:
        log.warning("bell not taken down", job=name, error=type(error).__name__)  # it runs out by itself


def _mark(bell: str) -> str:
    return f"labsite:bell:{bell}"


def is_answering() -> bool:
    return bool(django_rq.get_connection("dispatch").ping())


def depths() -> dict[str, int]:
    """Jobs waiting in each queue."""
    return {
        name: django_rq.get_queue(name, serializer="rq.serializers.JSONSerializer").count
        for name in sorted({queue for queue, _ in JOBS.values()})
    }
