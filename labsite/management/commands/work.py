"""`manage.py work QUEUE`: one RQ worker on exactly one queue, jobs in JSON."""

import argparse
import logging
import os

import django_rq
from django.conf import settings
from django.core.management.base import BaseCommand
from rq import SimpleWorker
from rq.serializers import JSONSerializer

from runs.jobs import lanes

LAST_SECONDS = 10.0
# What holds no place in a pool lets starts, ends and pages go first where there is too little processor for all: a third, a ninth of their share.
NICENESS = {"collect": 5, "export": 10}


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
        os.nice(NICENESS.get(queue, 0))
        # One queue, since RQ moves a job safely to its worker only then. Jobs run in this process, and each begins with
        # close_old_connections (runs/queue.py), so that a restarted database is met with a new connection.
        logging.getLogger("rq").setLevel(logging.WARNING)
        source = django_rq.get_queue(queue)
        worker = Worker([source], connection=source.connection, serializer=JSONSerializer)
        worker.work(burst=burst, logging_level="WARNING")
        lanes.wait(LAST_SECONDS)  # what is cut off after that is under leases, and taken up by others
