"""What happens to a pool of a Ray cluster on bad days: each against a real head."""

import contextlib
import json
import os
import signal
import socket
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from runs.pools import ray
from runs.pools.base import NoAnswer, Order, Status
from runs.pools.ray import RayJobs
from runs.pools.scheduler import Launch, Placed
from tests.runs.pools import ray_laboratory
from tests.runs.pools.conformance import DETACHED
from tests.runs.pools.laboratory import Laboratory, alive, wait_for
from tests.runs.pools.line_server import LineServer
from tests.runs.pools.ray_head import ADDRESS, CPUS, RayHead

pytestmark = [pytest.mark.ray, pytest.mark.timeout(240)]  # the head takes its time

WAITS = "import sys, time; open('../metrics.jsonl', 'a').write('x'); print('up', flush=True); time.sleep(200)"


@pytest.fixture
def lab(ray_head: RayHead, tmp_path: Path) -> Iterator[Laboratory]:
    yield from ray_laboratory.laboratory(ray_head, tmp_path)


@pytest.fixture
def jobs(ray_head: RayHead) -> Iterator[RayJobs]:
    ray._SILENT.clear()
    yield RayJobs(ray_head.url)
    ray._SILENT.clear()


def launcher_of(lab: Laboratory, order: Order) -> int:
    found: int = json.loads((lab.folder(order) / "state/pid.json").read_text())["launcher"]["pid"]
    return found


def seen_as(lab: Laboratory, order: Order, status: Status, word: str = "") -> None:
    wait_for(lambda: True if (seen := lab.look(order)).status == status and word in seen.reason else None, f"{status} {word}")


def finish(lab: Laboratory, order: Order) -> None:
    lab.pool.cancel(order.workspace, order.key, grace_seconds=0)
    lab.ended(order)


def ended(jobs: RayJobs, name: str) -> Placed:
    return wait_for(lambda: placed if (placed := jobs.look(name)).status == Status.EXITED else None, f"the end of {name} in Ray")


def test_a_head_that_is_lost_and_replaced(lab: Laboratory, ray_head: RayHead, jobs: RayJobs) -> None:
    """One launcher lives on as an orphan, one is killed with the head, one was not started yet: the folder's word stands in every case."""
    token = uuid.uuid4().hex
    orphan = lab.start(lab.order(WAITS, limits={"wall_seconds": 200}))
    killed = lab.start(lab.order(DETACHED, token, "stay", limits={"wall_seconds": 200}))
    lab.said(orphan, "up")
    lab.said(killed, "child")
    waiting = lab.start(lab.order(WAITS, resources={"slots": CPUS}))
    seen_as(lab, waiting, Status.PENDING, "Ray keeps it waiting")
    ray_head.lose(launcher_of(lab, orphan))
    try:
        # Nobody answers: what the folder does not know is unknown, and nothing that was asked is an end.
        seen_as(lab, waiting, Status.UNKNOWN, "did not answer")
        seen_as(lab, killed, Status.UNKNOWN, "did not answer")
        late = lab.start(lab.order(WAITS))
        seen_as(lab, late, Status.UNKNOWN, "did not answer")
        assert lab.look(orphan).status == Status.RUNNING
    finally:
        ray_head.start()
    assert jobs.look(orphan.key).status == Status.MISSING
    assert jobs.names() == []
    seen = lab.ended(killed)
    assert seen.exit is not None
    assert (seen.exit.code, seen.exit.reason) == (None, "launcher_lost")
    assert alive(token) == []
    assert lab.look(orphan).status == Status.RUNNING
    lab.pool.submit(orphan)
    seen_as(lab, waiting, Status.PENDING, "staged, and not with Ray yet")
    lab.pool.submit(late)
    lab.said(late, "up")
    lab.pool.submit(waiting)
    seen_as(lab, waiting, Status.PENDING, "Ray keeps it waiting")
    for order in (late, orphan, waiting):
        finish(lab, order)
        assert lab.log(order, "metrics.jsonl") in {"x", ""}
    assert lab.log(orphan, "metrics.jsonl") == "x"


def test_stop_of_one_that_waits_does_not_work_in_ray_and_a_late_start_does_nothing(lab: Laboratory, jobs: RayJobs) -> None:
    first = lab.start(lab.order(WAITS, resources={"slots": CPUS}))
    lab.said(first, "up")
    second = lab.start(lab.order(WAITS, resources={"slots": CPUS}))
    seen_as(lab, second, Status.PENDING, "Ray keeps it waiting")
    assert lab.look(second).native == f"job {second.key}"
    lab.pool.cancel(second.workspace, second.key, grace_seconds=0)
    seen = lab.look(second)
    assert seen.exit is not None
    assert (seen.status, seen.exit.reason, seen.exit.has_run) == (Status.EXITED, "cancelled", False)
    assert jobs.look(second.key).status == Status.PENDING, "Ray has learned to stop one that waits: say so in runs/pools/ray.py"
    finish(lab, first)
    ended(jobs, second.key)
    assert lab.look(second) == seen
    assert lab.log(second) == ""
    assert not (lab.folder(second) / "secrets").exists()


def test_one_that_is_stopped_on_ray_s_side_has_ended_by_the_engine_s_hand(lab: Laboratory, jobs: RayJobs) -> None:
    order = lab.start(lab.order(WAITS))
    lab.said(order, "up")
    jobs.stop(order.key)
    seen = lab.ended(order)
    ended(jobs, order.key)
    seen = lab.look(order)
    assert seen.exit is not None
    assert (seen.exit.reason, seen.exit.has_run) == ("engine_cancelled", True)
    assert "STOPPED" in seen.reason


def test_a_launcher_that_is_killed_ends_the_job_in_ray_too(lab: Laboratory, jobs: RayJobs) -> None:
    token = uuid.uuid4().hex
    order = lab.start(lab.order(DETACHED, token, "stay"))
    lab.said(order, "child")
    os.kill(launcher_of(lab, order), signal.SIGKILL)
    seen = lab.ended(order)
    assert seen.exit is not None
    assert (seen.exit.code, seen.exit.reason) == (None, "launcher_lost")
    assert alive(token) == []
    ended(jobs, order.key)


def test_asking_twice_for_one_name_starts_one(ray_head: RayHead, jobs: RayJobs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where both have looked before either has asked."""
    name, place = f"lab-1-{uuid.uuid4().hex}", marks(ray_head)
    start(jobs, name, place)
    start(jobs, name, place)
    with monkeypatch.context() as patch:
        patch.setattr(RayJobs, "look", lambda self, name: Placed(Status.MISSING))
        start(jobs, name, place)
    ended(jobs, name)
    assert len(list(place.iterdir())) == 1


def test_an_answer_that_is_lost_starts_nothing_twice(ray_head: RayHead, jobs: RayJobs) -> None:
    lost: list[bytes] = []

    def pass_on(line: socket.socket, request: bytes) -> None:
        """Ask the head, and forget what it says of a new job."""
        with socket.create_connection((ADDRESS, int(ray_head.url.rpartition(":")[2]))) as real:
            real.sendall(request)
            if request.startswith(b"POST") and request.endswith(b"\r\n\r\n"):
                real.sendall(line.recv(1 << 16))  # the content comes after the headers
            answer = b"".join(iter(lambda: real.recv(1 << 16), b""))
        if request.startswith(b"POST /api/jobs/ "):
            lost.append(answer)
        else:
            line.sendall(answer)

    name, place = f"lab-1-{uuid.uuid4().hex}", marks(ray_head)
    with LineServer(pass_on) as between:
        far = RayJobs(between.url)
        with pytest.raises(NoAnswer, match="did not answer"):
            start(far, name, place)
        ray._SILENT.clear()
        start(far, name, place)
    assert [answer.split(b" ")[1] for answer in lost] == [b"200"]
    ended(jobs, name)
    assert len(list(place.iterdir())) == 1


def test_a_program_that_is_not_there_is_said(ray_head: RayHead, jobs: RayJobs) -> None:
    name = f"lab-1-{uuid.uuid4().hex}"
    jobs.submit(Launch(name, ["/nowhere/python3"], Path("/"), slots=1, gpus=0, wall_seconds=1, memory_bytes=None))
    placed = ended(jobs, name)
    assert placed.ended_as == "engine_failed"
    assert "exit code 127; /bin/sh: 1: exec: /nowhere/python3: not found" in placed.reason


def marks(head: RayHead) -> Path:
    """A folder where each start leaves a file."""
    place = head.folder / uuid.uuid4().hex
    place.mkdir()
    with contextlib.suppress(PermissionError):
        os.chown(place, head.folder.stat().st_uid, -1)
    return place


def start(jobs: RayJobs, name: str, place: Path) -> None:
    argv = ["/usr/bin/mktemp", f"{place}/XXXXXX"]
    jobs.submit(Launch(name, argv, place, slots=1, gpus=0, wall_seconds=60, memory_bytes=None))
