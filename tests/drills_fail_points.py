"""A worker that kills itself at a named point: `python -m tests.drills_fail_points POINT`. Drills start it beside labsite's own workers.

The product has no hooks for it: the function at the point is replaced in this process alone, by one that dies before or after the real one.
"""

import importlib
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

# name -> (queue of the worker, module, function or Class.method, when)
POINTS = {
    "dispatch.before-claim": ("dispatch", "runs.jobs.dispatch", "start_attempt", "before"),
    "dispatch.claimed": ("dispatch", "runs.jobs.dispatch", "start_attempt", "after"),
    "dispatch.staging": ("dispatch", "runs.pools.local", "stage", "after"),
    "dispatch.staged": ("dispatch", "runs.pools.local", "LocalPool.start", "before"),
    "dispatch.started": ("dispatch", "runs.pools.local", "LocalPool.start", "after"),
    "dispatch.marked": ("dispatch", "runs.jobs.dispatch", "mark_running", "after"),
    "watch.observed": ("watch", "runs.jobs.watch", "_note", "before"),
    "watch.noted": ("watch", "runs.jobs.watch", "_note", "after"),
    "watch.reading": ("watch", "runs.ingest", "_take_metrics", "after"),
    "watch.before-end": ("watch", "runs.jobs.watch", "end_attempt", "before"),
    "watch.ended": ("watch", "runs.jobs.watch", "end_attempt", "after"),
    "collect.file": ("collect", "workspaces.store", "put_stream", "after"),
    "collect.before-finish": ("collect", "runs.jobs.collect", "finish_run", "before"),
    "collect.finished": ("collect", "runs.jobs.collect", "finish_run", "after"),
    "collect.removing": ("collect", "runs.pools.local", "LocalPool.remove", "before"),
}


def dies(real: Callable[..., Any], when: str) -> Callable[..., Any]:
    def instead(*args: Any, **given: Any) -> Any:
        if when == "after":
            real(*args, **given)
        os.kill(os.getpid(), signal.SIGKILL)

    return instead


def main(point: str) -> None:
    queue, module, path, when = POINTS[point]
    import django  # noqa: PLC0415  # settings are read when this starts

    django.setup()
    from django.core.management import call_command  # noqa: PLC0415

    place: Any = importlib.import_module(module)
    *outer, name = path.split(".")
    for part in outer:
        place = getattr(place, part)
    setattr(place, name, dies(getattr(place, name), when))
    call_command("work", queue)


if __name__ == "__main__":
    main(sys.argv[1])
