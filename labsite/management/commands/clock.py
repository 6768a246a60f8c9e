"""`manage.py clock`: the loop that rings recurring work; two of them run as one."""

import signal
import time
from types import FrameType

import redis
import structlog
from django.core.management.base import BaseCommand
from django.db import Error, connection

from labsite.clock import TICK_SECONDS, Clock

log = structlog.get_logger(__name__)
LONGEST_WAIT_SECONDS = 4.0  # between two tries to reach a database or a queue that is away


class Command(BaseCommand):
    help = "Ring recurring work once a second until SIGTERM or SIGINT. A second clock waits until the first has ended."

    def handle(self, **options: object) -> None:
        # Ending in the midst of anything is harmless: a bell is rung or not, and rung again by the next clock.
        signal.signal(signal.SIGTERM, _end)
        signal.signal(signal.SIGINT, _end)
        clock, failures = Clock(), 0
        while True:
            began = time.monotonic()
            try:
                if clock.is_ours():
                    clock.tick()
                failures = 0
            except (Error, redis.RedisError) as error:
                failures += 1
                log.warning("the clock waits for database or queue", error=type(error).__name__, failures=failures)
                connection.close()
            wait = TICK_SECONDS if not failures else min(LONGEST_WAIT_SECONDS, 2.0 ** (failures - 1))
            time.sleep(max(0.0, wait - (time.monotonic() - began)))


def _end(number: int, frame: FrameType | None) -> None:
    raise SystemExit(0)
