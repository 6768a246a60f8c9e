"""A worker that kills itself at a named point: `python -m tests.drills_fail_points POINT`. Drills start it beside labsite's own workers.

The product has no hooks for it: the function at the point is replaced in this process alone, by one that dies before or after the real one.
"""

import importlib
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

# name -> (queue of the worker, module, function or Class.method, when). A word behind the method: where that is its first argument.
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
    "dispatch.far-before": ("dispatch", "runs.pools.ssh", "SSHPool.submit", "before"),
    "dispatch.far-staged": ("dispatch", "runs.pools.ssh", "SSHPool._ask start", "before"),
    "dispatch.far-started": ("dispatch", "runs.pools.ssh", "SSHPool._ask start", "after"),
    "watch.far-observed": ("watch", "runs.pools.ssh", "SSHPool._ask observe", "after"),
    "collect.far-outputs": ("collect", "runs.pools.ssh", "SSHPool._ask outputs", "after"),
    "collect.far-removing": ("collect", "runs.pools.ssh", "SSHPool._ask remove", "before"),
    "collect.far-removed": ("collect", "runs.pools.ssh", "SSHPool._ask remove", "after"),
}


def points_of(engine: str) -> list[str]:
    """Points that runs on such an engine pass."""
    elsewhere = "runs.pools.ssh" if engine == "local" else "runs.pools.local"
    return [name for name, (_, module, _, _) in POINTS.items() if module != elsewhere]


def dies(real: Callable[..., Any], when: str, word: str = "") -> Callable[..., Any]:
    def instead(*args: Any, **given: Any) -> Any:
        if word and word not in args[1:2]:  # behind the object itself
            return real(*args, **given)
        if when == "after":
            real(*args, **given)
        os.kill(os.getpid(), signal.SIGKILL)
        return None

    return instead


def main(point: str) -> None:
    queue, module, path, when = POINTS[point]
    import django  # noqa: PLC0415  # settings are read when this starts

    django.setup()
    from django.core.management import call_command  # noqa: PLC0415

    place: Any = importlib.import_module(module)
    path, _, word = path.partition(" ")
    *outer, name = path.split(".")
    for part in outer:
        place = getattr(place, part)
    setattr(place, name, dies(getattr(place, name), when, word))
    call_command("work", queue)


if __name__ == "__main__":
    main(sys.argv[1])
