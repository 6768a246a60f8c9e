"""Kill labsite's programs while runs are at work, and look that nothing is lost or done twice: `python tests/drills/kill_and_restart.py`.

A whole installation under `manage.py up`. In turn: SIGKILL of every worker in mid-run, FLUSHALL of the queue, SIGKILL of the watcher; Ctrl-C
while a run is at work; SIGKILL of `up` itself. Every run ends once, metrics are whole, the ledger and the record verify. About two minutes.
"""

import os
import signal
import time
from pathlib import Path
from typing import Any

from tests.installation import Installation, wait_until

STEPS = 4_000
WRITES = f"""
import json, os, time
attempt = json.load(open(os.environ["LABSITE_JOB"]))["attempt"]
params = json.load(open(os.environ["LABSITE_JOB"]))["params"]
if attempt == 1:
    open("../outputs/first", "w").write("here")
seconds = params.get("seconds", 6) if attempt == 1 else 0.5
with open("../metrics.jsonl", "a") as metrics:
    for step in range({STEPS}):
        metrics.write(json.dumps({{"key": "loss", "value": step, "step": step}}) + "\\n")
        if step % 100 == 0:
            metrics.flush()
            time.sleep(seconds / {STEPS // 100})
print("done")
""".encode()


def main() -> None:
    began = time.monotonic()
    with Installation() as labsite:
        # Django reads its settings when it is first imported: after the installation has its folders.
        import django  # noqa: PLC0415

        django.setup()
        from tests.drills_ground import Ground  # noqa: PLC0415

        ground = Ground(labsite, WRITES)
        print(f"{time.monotonic() - began:5.1f} s  started")

        runs = [labsite.ask("runs", {**ground.request, "budget": {"gpu_hours": 0.1}}) for _ in range(4)]
        wait_until(lambda: ground.active() == 2, "two runs at work")
        for pid in labsite.programs("manage.py work"):
            os.kill(pid, signal.SIGKILL)
        time.sleep(0.3)
        ground.flush_queue()
        wait_until(lambda: labsite.programs("work watch"), "a new watcher")
        time.sleep(1.5)
        for pid in labsite.programs("work watch") + labsite.programs("manage.py clock"):
            os.kill(pid, signal.SIGKILL)
        ground.flush_queue()
        for run in runs:
            ended(labsite, run)
            assert ground.attempts(run) == ["ended"]
            assert ground.steps(run) == list(range(STEPS)), "points were lost or doubled"
        print(
            f"{time.monotonic() - began:5.1f} s  workers, watcher and clock killed, queue emptied: 4 runs ended once, {STEPS} points each"
        )

        run = labsite.ask("runs", {**ground.request, "parameters": {"seconds": 120}})
        wait_until(lambda: labsite.ask(f"runs/{run['id']}")["status"] == "running", "a run at work")
        reserved = labsite.ask(f"runs/{run['id']}")["reserved_gpu_ms"]
        assert labsite.end(signal.SIGINT) == 0, "Ctrl-C did not end well"
        assert not ground.left_processes(), "Ctrl-C left processes of the run"
        labsite.start()
        found = labsite.ask(f"runs/{run['id']}")
        assert found["status"] == "succeeded" or found["reserved_gpu_ms"] == reserved, f"the reservation is gone: {found}"
        ended(labsite, run)
        assert ground.attempts(run) == ["interrupted", "ended"]
        assert 0 < labsite.ask(f"runs/{run['id']}")["spent_gpu_ms"] <= reserved
        print(f"{time.monotonic() - began:5.1f} s  Ctrl-C: interrupted, started again, ended within its reservation")

        run = labsite.ask("runs", {**ground.request, "parameters": {"seconds": 12}})
        wait_until(lambda: ground.steps(run), "first points")
        labsite.end(signal.SIGKILL)
        assert ground.left_processes(), "the attempt died with labsite"
        labsite.start()
        ended(labsite, run)
        assert ground.attempts(run) == ["ended"]
        assert ground.steps(run) == list(range(STEPS)), "points were lost or doubled"
        print(f"{time.monotonic() - began:5.1f} s  SIGKILL of up: the attempt ran on and was taken up again")

        ground.check()
        print(labsite.manage("recount").strip())
        print(labsite.manage("verify").strip())


def ended(labsite: Installation, run: dict[str, Any]) -> None:
    found = wait_until(lambda: (now := labsite.ask(f"runs/{run['id']}"))["ended_at"] and now, f"the end of {run['name']}", seconds=100)
    assert found["status"] == "succeeded", found


if __name__ == "__main__":
    assert Path("manage.py").exists(), "start it in the checkout"
    main()
