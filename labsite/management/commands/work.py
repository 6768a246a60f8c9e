"""`manage.py work QUEUE`: one RQ worker on exactly one queue, jobs in JSON."""

import argparse
import gc
import logging
import os
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import django_rq
from django.conf import settings
from django.core.management.base import BaseCommand
from rq import SimpleWorker
from rq.serializers import JSONSerializer

from runs.jobs import lanes
from runs.queue import JOBS

LAST_SECONDS = 10.0
AUTOGROUP = Path("/proc/self/autogroup")
# Packing an archive lets all else go first, with a ninth of its share. Nobody else does: who settles holds the ledger's lock while he waits for the
# processor, and then keeps all waiting that go before him.
NICENESS = {"export": 10}


def give_way(niceness: int) -> None:
    """Be nicer by so much, 0 to 19. Linux weighs the processes of a session against each other, and sessions by a niceness of their own
    (sched(7), autogroups); each worker is a session, so both are set."""
    os.nice(niceness)
    with suppress(OSError):  # a kernel without autogroups has no such file
        AUTOGROUP.write_text(str(niceness))


def settle(queue: str) -> None:
    """Load the queue's jobs, and put what has been loaded out of the garbage collector's sight: it stays as long as the worker, and each look
    through all of it took as long as a whole run."""
    for _, function in (job for job in JOBS.values() if job[0] == queue):
        import_module(function.rpartition(".")[0])
    gc.collect()
    gc.freeze()


class Worker(SimpleWorker):
    """Runs jobs in its own process; asks a queue that is away often enough for what waits to go out within seconds of its return."""

    max_connection_wait_time = 4.0


class Command(BaseCommand):
    help = "Work on one queue until SIGTERM or SIGINT; the job in hand is finished first."
    requires_system_checks = []  # they load every page; a worker needs none of that memory

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("queue", choices=settings.QUEUES)
        parser.add_argument("--burst", action="store_true", help="end when the queue is empty")

    def handle(self, *, queue: str, burst: bool, **options: object) -> None:
        give_way(NICENESS.get(queue, 0))
        # One queue, since RQ moves a job safely to its worker only then. Jobs run in this process, and each begins with
        # close_old_connections (runs/queue.py), so that a restarted database is met with a new connection.
        logging.getLogger("rq").setLevel(logging.WARNING)
        source = django_rq.get_queue(queue)
        settle(queue)
        worker = Worker([source], connection=source.connection, serializer=JSONSerializer)
        worker.work(burst=burst, logging_level="WARNING")
        lanes.wait(LAST_SECONDS)  # what is cut off after that is under leases, and taken up by others
