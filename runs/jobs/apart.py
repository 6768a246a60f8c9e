"""Steps of one job that do not depend on each other: what one stumbles over keeps none of the others from their turn."""

from collections.abc import Iterator
from contextlib import contextmanager

import structlog
from rq.timeouts import BaseTimeoutException

log = structlog.get_logger(__name__)


@contextmanager
def apart(step: str, **about: str) -> Iterator[None]:
    """Log whatever the step raises and go on behind it; only the worker's own end of its patience passes."""
    try:
        yield
    except BaseTimeoutException:
        raise
    except Exception:
        log.exception("a step failed", step=step, **about)
