"""A controller of Slurm that dies: each test has a cluster of its own."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from runs.pools import slurm
from runs.pools.base import Status
from runs.pools.isolation import Isolation
from tests.runs.pools import slurm_laboratory
from tests.runs.pools.laboratory import Laboratory
from tests.runs.pools.slurm_cluster import SlurmCluster
from tests.runs.pools.slurm_laboratory import end_of, forget, queue, seen_as


@pytest.fixture
def fragile() -> Iterator[SlurmCluster]:
    """A cluster of its own: one whose controller was killed may take ended jobs for running ones, and close their nodes."""
    found = SlurmCluster()
    try:
        yield found
    finally:
        found.close()


@pytest.fixture
def fragile_lab(fragile: SlurmCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Laboratory]:
    forget()
    yield from slurm_laboratory.laboratory(fragile, tmp_path, monkeypatch, Isolation.NONE)
    forget()


def test_a_controller_that_is_down_is_no_end(fragile_lab: Laboratory, fragile: SlurmCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    lab = fragile_lab
    queued = queue(lab, fragile)
    monkeypatch.setattr(slurm, "CALL_SECONDS", 1.0)  # squeue itself would wait for 18 s
    fragile.saved(queued.key)
    fragile.kill_controller()
    assert "Slurm" in seen_as(lab, queued, Status.UNKNOWN).reason
    late = lab.start(lab.order("print('late')"))  # staged, and left to the next look
    assert lab.look(late).status == Status.UNKNOWN
    began = time.monotonic()
    for _ in range(20):
        lab.look(queued)
    assert time.monotonic() - began < 1, "after one call without an answer the others are not kept waiting"
    fragile.start_controller()  # which finds in its file that the partition is up
    monkeypatch.setattr(slurm, "CALL_SECONDS", 12.0)
    assert not seen_as(lab, late, Status.PENDING, "not with Slurm yet").native
    lab.pool.submit(late)
    assert end_of(lab, late)[:2] == end_of(lab, queued)[:2] == (0, "exit")


def test_a_controller_that_forgot_a_job_and_gave_its_id_away_confuses_nobody(fragile_lab: Laboratory, fragile: SlurmCluster) -> None:
    lab = fragile_lab
    order = queue(lab, fragile)
    number = fragile.job(order.key, "%i")
    fragile.kill_controller()
    for path in (fragile.folder / "state").glob("job_state*"):
        path.unlink()  # where it had saved the job before it died, which takes it up to five seconds
    fragile.start_controller()
    fragile.ready()
    assert fragile.run("sbatch", "--parsable", "--job-name=somebody", "--output=/dev/null", "--wrap=sleep 60").strip() == number
    forget()
    seen_as(lab, order, Status.PENDING, "not with Slurm yet")
    lab.pool.submit(order)
    assert end_of(lab, order)[:2] == (0, "exit")
    lab.pool.cancel(order.workspace, order.key, grace_seconds=0)
    fragile.wait(lambda: fragile.job("somebody") == "RUNNING", "the job of somebody else")
    assert lab.log(order, "metrics.jsonl") == "x"
