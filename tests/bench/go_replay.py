"""Correctness of self-play in bulk: `make bench BENCH=go_replay ARGS=[games]`, 2,000 on 5x5 where nothing is said, a tenth of them on 7x7.

Plays them as the agent does, in its run folder, and has each replayed by GNU Go over GTP: the same moves legal, the same captures and stones
after every move, the same score. One disagreement is a failure. Needs GNU Go and, as LABSITE_POOL_PYTHON, a Python with numpy.
"""

import sys
import tempfile
import time
from pathlib import Path

from labsite.examples.autogo import plan
from tests.examples.autogo.bundle import lines, pool_python, start
from tests.targets import judged, leave

GAMES = 2000


def main() -> None:
    games = int(sys.argv[1]) if len(sys.argv) > 1 else GAMES
    failed = False
    with tempfile.TemporaryDirectory(prefix="go-replay-") as folder:
        for size, count in ((5, games), (7, max(1, games // 10))):
            began = time.monotonic()
            params = {"size": size, "games": count, "simulations": 16, "replay": "required"}
            run = start(pool_python(), Path(folder) / f"{size}x{size}", plan.SELFPLAY_WORKER, params=params, seed=2026, seconds=3600)
            notes = [event["text"] for event in lines(run.folder / "events.jsonl") if event["type"] == "note"]
            print(f"{size}x{size}: {' '.join(notes) or run.stderr.strip()} ({time.monotonic() - began:.0f} s)", flush=True)
            failed |= run.code != 0
    print(f"target: no disagreement: {judged('no disagreement', not failed)}")


if __name__ == "__main__":
    main()
    leave()
