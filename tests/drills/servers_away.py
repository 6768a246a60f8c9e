"""Servers that go and come back under a whole installation: `python tests/drills/servers_away.py [runs]`.

1. Runs are queued while the pool is full; Valkey is emptied and killed. It is started again, and all that was queued goes out within 60 s.
2. PostgreSQL is stopped and started again while runs are at work. From the moment in which it takes connections again, what was in flight ends,
   and a new run is launched and ends, within 30 s.

In the end every run has ended once, and ledger and record verify. The seconds are printed; exit code 0 only where both targets are met.
"""

import os
import signal
import sys
import time
import urllib.error
from contextlib import suppress
from typing import Any

from tests.installation import Installation, wait_until

QUEUE_SECONDS, DATABASE_SECONDS = 60.0, 30.0
CODE = b"import os, time\nuntil = time.monotonic() + 3\nwhile time.monotonic() < until:\n    time.sleep(0.05)\nprint('done')\n"


def main(count: int) -> int:
    with Installation() as labsite:
        # Django reads its settings when it is first imported: after the installation has its folders.
        import django  # noqa: PLC0415

        django.setup()
        from django.db import Error  # noqa: PLC0415

        from runs.models import Run  # noqa: PLC0415
        from tests.drills_ground import Ground  # noqa: PLC0415
        from workspaces.commands.pool import change_pool  # noqa: PLC0415
        from workspaces.models import Pool  # noqa: PLC0415

        ground = Ground(labsite, CODE, slots=1, engine_slots=count + 1)
        request = {**ground.request, "budget": {"gpu_hours": 0.02}}

        def launch() -> dict[str, Any]:
            found: dict[str, Any] = labsite.ask("runs", request)
            return found

        def waiting() -> int:
            with ground.looking():
                return Run.objects.filter(status="queued").count()

        def all_ended() -> bool:
            with suppress(Error), ground.looking():
                return not Run.objects.filter(ended_at=None).exists()
            return False

        time.sleep(60)  # a server that falls in its first minute is taken for one that cannot stay up
        for _ in range(count):
            launch()
        ground.flush_queue()
        for pid in labsite.programs("valkey-server"):
            os.kill(pid, signal.SIGKILL)
        began = time.monotonic()
        with ground.looking():
            change_pool(actor=ground.laboratory.owner, pool=Pool.objects.get(slug="local"), slots=count + 1)
        queued = waiting()
        wait_until(lambda: not waiting(), "all that was queued has gone out", seconds=180)
        out = time.monotonic() - began
        print(f"Valkey emptied and killed with {queued} queued: all went out after {out:.1f} s, target {QUEUE_SECONDS:.0f}", flush=True)
        wait_until(all_ended, "their ends", seconds=180)

        for _ in range(4):
            launch()
        wait_until(lambda: ground.active(), "runs at work")
        (server,) = labsite.programs("postgres")
        os.kill(server, signal.SIGINT)  # a fast shutdown
        wait_until(lambda: answers(ground), "the database again", seconds=60)
        began = time.monotonic()

        def launched() -> dict[str, Any] | None:
            with suppress(urllib.error.HTTPError, TimeoutError):
                return launch()
            return None

        wait_until(launched, "a launch", seconds=120)
        answered = time.monotonic() - began
        wait_until(all_ended, "the end of all", seconds=180)
        right = time.monotonic() - began
        print(
            f"PostgreSQL stopped and started: a launch was taken {answered:.1f} s after it answered, all had ended {right:.1f} s after, "
            f"target {DATABASE_SECONDS:.0f}",
            flush=True,
        )
        ground.check()
        print(labsite.manage("recount").strip())
        print(labsite.manage("verify").strip())
        return 0 if out < QUEUE_SECONDS and right < DATABASE_SECONDS else 1


def answers(ground: Any) -> bool:
    from django.db import Error, connection  # noqa: PLC0415

    try:
        with ground.looking(), connection.cursor() as cursor:
            cursor.execute("SELECT 1")
            return True
    except Error:
        return False


if __name__ == "__main__":
    raise SystemExit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 12))
