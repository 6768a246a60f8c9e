"""Launch accepted -> process started: `make bench BENCH=launch_latency ARGS=[launches]` against a whole installation that is otherwise idle.

From the moment in which the API's answer has arrived until the launcher has written pid.json of the attempt. Beside it, measured in the
same run, the bare minimum: the pool's own submit of the same order, in this process, without API, database, queue or worker.
Target: p95 under 0.3 s.
"""

import statistics
import sys
import time
from pathlib import Path

from tests.installation import Installation, wait_until
from tests.targets import judged, leave

CODE = b"import time\ntime.sleep(0.4)\n"


def p95(found: list[float]) -> float:
    return statistics.quantiles(found, n=20, method="inclusive")[-1]


def line(name: str, found: list[float]) -> str:
    return f"{name:34} p50 {statistics.median(found):6.3f} s   p95 {p95(found):6.3f} s   most {max(found):6.3f} s   n={len(found)}"


def main(count: int) -> None:
    with Installation() as labsite:
        # Django reads its settings when it is first imported: after the installation has its folders.
        import django  # noqa: PLC0415

        django.setup()
        from tests.drills_ground import Ground  # noqa: PLC0415

        ground = Ground(labsite, CODE)
        runs = labsite.place / "runs" / "runs" / ground.laboratory.workspace.pk.hex
        answered, launched = [], []
        for _ in range(count):
            asked = time.time()
            run = labsite.ask("runs", ground.request)
            accepted = time.time()
            started = wait_until(lambda: newest(runs, accepted - 1), "the process")  # noqa: B023  # called at once
            answered.append(accepted - asked)
            launched.append(started - accepted)
            wait_until(lambda: labsite.ask(f"runs/{run['id']}")["ended_at"], "the end")  # noqa: B023  # called at once
        bare = ground.bare_starts(count)
        print(line("request -> answer", answered))
        print(line("answer -> process started", launched))
        print(line("the pool alone: submit -> started", bare))
        print(f"ratio of the medians {statistics.median(launched) / statistics.median(bare):.1f}; target p95 0.300 s: ", end="")
        print(judged("launch", p95(launched) < 0.3))


def newest(runs: Path, after: float) -> float | None:
    """When the launcher wrote the pid.json that is younger than `after`, seconds UTC."""
    for place in runs.glob("*/state/pid.json"):
        try:
            written = place.stat().st_mtime
        except OSError:
            continue
        if written > after:
            return written
    return None


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 30)
    leave()
