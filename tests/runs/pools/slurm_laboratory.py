"""A Laboratory whose pool is a SlurmCluster, asked on this machine."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from runs.pools import slurm
from runs.pools.base import Observation, Order, Status
from runs.pools.isolation import Isolation
from runs.pools.scheduled import ScheduledPool
from runs.pools.slurm import Slurm
from runs.pools.travelling import bring
from tests.runs.pools.laboratory import Laboratory, wait_for
from tests.runs.pools.slurm_cluster import SlurmCluster


def laboratory(
    cluster: SlurmCluster, store: Path, monkeypatch: pytest.MonkeyPatch, isolation: Isolation = Isolation.USER, partition: str = ""
) -> Iterator[Laboratory]:
    """The pool's folder is below the cluster's own, where its nodes see it."""
    monkeypatch.setenv("SLURM_CONF", str(cluster.conf))
    root = Path(tempfile.mkdtemp(prefix="runs-", dir=cluster.folder))
    root.chmod(0o711)
    pool = ScheduledPool(root, isolation, [store], None, Slurm(partition=partition), launcher=bring(root))
    spec = {"root": str(root), "isolation": isolation.value, "hidden": str(store), "scheduler": "slurm", "partition": partition}
    lab = Laboratory(pool, store, spec)
    try:
        yield lab
    finally:
        lab.clear()


def forget() -> None:
    """What another test has heard of the cluster."""
    slurm._LISTED.clear()
    slurm._WITHOUT_ACCOUNTS.clear()


def queue(lab: Laboratory, cluster: SlurmCluster) -> Order:
    """An attempt that waits in Slurm's queue, whose partition is down."""
    cluster.run("scontrol", "update", "partitionname=main", "state=down")
    order = lab.start(lab.order("open('../metrics.jsonl', 'a').write('x')"))
    assert seen_as(lab, order, Status.PENDING, "PartitionDown").native
    return order


def seen_as(lab: Laboratory, order: Order, status: Status, words: str = "") -> Observation:
    """Wait until the attempt is seen like that, for a reason with these words in it."""

    def look() -> Observation | None:
        seen = lab.look(order)
        return seen if seen.status == status and words in seen.reason else None

    return wait_for(look, f"{status} {words}")


def end_of(lab: Laboratory, order: Order) -> tuple[int | None, str, str]:
    """Wait for the end: its code, its reason, and the engine's words."""
    seen = lab.ended(order)
    assert seen.exit is not None
    return seen.exit.code, seen.exit.reason, seen.reason
