"""Large outputs beside everything else, and a collector that is killed: `python tests/drills/outputs.py [megabytes]`.

A whole installation under `manage.py up`. While 300 MB (or as many as are asked for) of one run are collected, another run is cancelled; then the
collecting worker is killed with SIGKILL between two files. Every run ends once, every file is whole, and the figures are printed. About a minute.
"""

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from tests.installation import Installation, wait_until

FILES, MEGABYTES = 60, 300
WRITES = b"""
import hashlib, json, os, time
params = json.load(open(os.environ["LABSITE_JOB"]))["params"]
for number in range(params.get("files", 0)):
    block = hashlib.sha256(f"{os.getpid()}-{number}".encode()).digest()
    with open(f"../outputs/{number:03d}.bin", "wb") as file:
        file.write(block * (params["megabytes"] * 2**20 // len(block)))
time.sleep(params.get("seconds", 0))
print("done")
"""


def main(megabytes: int) -> None:
    files = {"files": FILES, "megabytes": -(-megabytes // FILES)}
    began = time.monotonic()
    with Installation() as labsite:
        # Django reads its settings when it is first imported: after the installation has its folders.
        import django  # noqa: PLC0415

        django.setup()
        from tests.drills_ground import Ground  # noqa: PLC0415

        ground = Ground(labsite, WRITES)
        print(f"{time.monotonic() - began:5.1f} s  started")

        other = labsite.ask("runs", {**ground.request, "parameters": {"seconds": 300}})
        wait_until(lambda: labsite.ask(f"runs/{other['id']}")["status"] == "running", "a run at work")
        large = labsite.ask("runs", {**ground.request, "parameters": files})
        wait_until(lambda: ground.kept(large) >= 1, "the first file of the other")
        asked = time.monotonic()
        labsite.ask(f"runs/{other['id']}/cancel", {"reason": "a drill"})
        wait_until(lambda: ground.attempts(other) == ["ended"], "the end of the cancelled run's processes")
        stopped = time.monotonic() - asked
        wait_until(lambda: labsite.ask(f"runs/{other['id']}")["status"] == "cancelled", "the cancelled run's status")
        said = time.monotonic() - asked
        assert stopped < 10, f"a cancel took {stopped:.1f} s while outputs were collected"
        ended(labsite, large)
        print(
            f"{time.monotonic() - began:5.1f} s  {FILES * files['megabytes']} MB collected; a cancel beside it ended the processes after "
            f"{stopped:.1f} s and was final after {said:.1f} s"
        )

        large = labsite.ask("runs", {**ground.request, "parameters": files})
        wait_until(lambda: ground.kept(large) >= 3, "three files", seconds=90)
        for pid in labsite.programs("work collect"):
            os.kill(pid, signal.SIGKILL)
        killed, at_death = time.monotonic(), ground.kept(large)
        ended(labsite, large)
        assert 3 <= at_death < FILES, f"it was killed after {at_death} of {FILES} files"
        print(
            f"{time.monotonic() - began:5.1f} s  collector killed after {at_death} of {FILES} files; ended "
            f"{time.monotonic() - killed:.0f} s later"
        )

        assert ground.attempts(large) == ["ended"]
        assert ground.outputs_are_whole(large) == FILES
        ground.check()
        print(labsite.manage("recount").strip())
        print(labsite.manage("verify").strip())


def ended(labsite: Installation, run: dict[str, Any]) -> None:
    found = wait_until(lambda: (now := labsite.ask(f"runs/{run['id']}"))["ended_at"] and now, f"the end of {run['name']}", seconds=150)
    assert found["status"] == "succeeded", found
    assert not found["reason"], found


if __name__ == "__main__":
    assert Path("manage.py").exists(), "start it in the checkout"
    main(int(sys.argv[1]) if len(sys.argv) > 1 else MEGABYTES)
