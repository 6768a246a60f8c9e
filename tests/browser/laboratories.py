"""Laboratories as people find them: at work, with nothing in them yet, and filled by somebody who means harm; and a worker beside the browser."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.db import connection

from runs.lifecycle import TERMINAL, RunStatus
from runs.models import Run
from tests.factories_runs import Laboratory, dispatch, make_laboratory, watch

STEPWISE = """
import json, os, time
def tell(file, **body):
    with open("../" + file, "a") as lines:
        lines.write(json.dumps(body) + "\\n")
print("epoch 1 begins", flush=True)
for step in range(3):
    tell("metrics.jsonl", key="loss", value=1 / (step + 1), step=step)
end = time.time() + 60
while not os.path.exists({gate!r}) and time.time() < end:
    time.sleep(0.05)
for step in range(3, 6):
    tell("metrics.jsonl", key="loss", value=1 / (step + 1), step=step)
with open("../outputs/model.json", "w") as model:
    model.write("{{}}")
tell("events.jsonl", type="artifact", path="model.json", name="model", kind="model", metadata={{}})
tell("events.jsonl", type="score", benchmark="accuracy", metric="accuracy", value=0.8125, stderr=0.02, samples=400)
print("epoch 2 is done", flush=True)
"""


def stepwise_laboratory(gate: Path, slug: str = "lab") -> Laboratory:
    """Its agent prints and measures, then waits until the file `gate` is there, then ends with a score. No timing decides what a test sees."""
    return make_laboratory(slug, code=STEPWISE.format(gate=str(gate)).encode())


@contextmanager
def worker(*laboratories: Laboratory) -> Iterator[None]:
    """What workers and clock do, in a thread with a connection of its own, until the block ends and every attempt has ended."""
    stop, faults = threading.Event(), []

    def work() -> None:
        try:
            while not stop.wait(0.1):
                for laboratory in laboratories:
                    dispatch(laboratory)
                    watch(laboratory)
        except BaseException as fault:  # it belongs to the test, not to this thread
            faults.append(fault)
        finally:
            connection.close()

    thread = threading.Thread(target=work, name="worker beside the browser")
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(30)
    if faults:
        raise faults[0]
    for laboratory in laboratories:
        with laboratory.opened():
            ends = {*TERMINAL, RunStatus.AWAITING_APPROVAL, RunStatus.QUEUED}
            alive = [run.name for run in Run.objects.all() if RunStatus(run.status) not in ends]
        assert not alive, f"still under way at the end of the test: {alive}"
