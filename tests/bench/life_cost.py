"""CPU time and statements of each step in a run's life: `make bench BENCH=life_cost ARGS="[runs] [--profile]"`.

A worker's own jobs, run one after the other in this process on the local pool with a program that does nothing: launch, claim, hand over,
look, collect. CPU is this process's own (all threads), beside it that of the processes it has started and waited for, and of PostgreSQL's backends.
Statements are those of the main thread and of the lanes, counted at the cursor.
"""

import cProfile
import os
import pstats
import resource
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "labsite.settings")
django.setup()

from django.core.management import call_command  # noqa: E402  # after the settings are read, as everything below
from django.db import connection  # noqa: E402
from django.db.backends.utils import CursorWrapper  # noqa: E402

from runs.models import Run  # noqa: E402
from tests.factories_registry import stored  # noqa: E402
from tests.factories_runs import Laboratory, collect, dispatch, launch, make_laboratory, watch_only  # noqa: E402
from workspaces.commands.agent import create_agent, publish_agent_version  # noqa: E402

STATEMENTS = [0]


def count_statements() -> None:
    """Count at the cursor, in every thread."""
    execute = CursorWrapper.execute

    def counted(self: CursorWrapper, sql: Any, params: Any = None) -> Any:
        STATEMENTS[0] += 1
        return execute(self, sql, params)

    CursorWrapper.execute = counted  # type: ignore[method-assign]  # the one place that all statements pass


def cpu() -> tuple[float, float, float]:
    """Seconds of this process, of those that it waited for, and of PostgreSQL's backends that serve it."""
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pid FROM pg_stat_activity WHERE datname = current_database()")
        served = sum(backend_seconds(pid) for (pid,) in cursor.fetchall())
    return own.ru_utime + own.ru_stime, children.ru_utime + children.ru_stime, served


def backend_seconds(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except FileNotFoundError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def step(name: str, count: int) -> Iterator[None]:
    before, statements, began = cpu(), STATEMENTS[0], time.monotonic()
    yield
    own, children, served = ((now - then) * 1000 / count for now, then in zip(cpu(), before, strict=True))
    print(
        f"{name:8} {own:6.1f} ms  children {children:5.1f} ms  PostgreSQL {served:5.1f} ms"
        f"  {(STATEMENTS[0] - statements) / count:5.1f} statements  {(time.monotonic() - began) * 1000 / count:6.1f} ms of the clock",
        flush=True,
    )


def until(laboratory: Laboratory, status: str, move: Callable[[Laboratory], None]) -> None:
    while True:
        move(laboratory)
        with laboratory.opened():
            if not Run.objects.exclude(status=status).exists():
                return
        time.sleep(0.1)


def main(count: int, *, is_profiled: bool) -> None:
    call_command("migrate", verbosity=0)
    laboratory = make_laboratory(at_once=2 * count, slots=2 * count, engine_slots=2 * count)
    with laboratory.opened():
        agent = create_agent(actor=laboratory.owner, slug="nothing")
        publish_agent_version(actor=laboratory.owner, agent=agent, argv=["/bin/true"], files=[stored("main.py", b"")], wall_seconds=60)
    for name in ("warm", "measured"):
        profile = cProfile.Profile() if is_profiled and name == "measured" else None
        print(name)
        if profile:
            profile.enable()
        with step("launch", count), laboratory.opened():
            for _ in range(count):
                launch(laboratory, agent="nothing", gpu_ms=36_000)
        with step("start", count):
            until_started(laboratory)
        time.sleep(1)
        with step("look", count):
            watch_only(laboratory)
        with step("collect", count):
            until(laboratory, "succeeded", collect)
        if profile:
            profile.disable()
            pstats.Stats(profile).sort_stats("tottime").print_stats(45)


def until_started(laboratory: Laboratory) -> None:
    while True:
        dispatch(laboratory)
        with laboratory.opened():
            if not Run.objects.filter(status="queued").exists():
                return


if __name__ == "__main__":
    count_statements()
    numbers = [one for one in sys.argv[1:] if one.isdigit()]
    main(int(numbers[0]) if numbers else 40, is_profiled="--profile" in sys.argv)
