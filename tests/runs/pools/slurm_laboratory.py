"""A Laboratory whose pool is a SlurmCluster, asked on this machine."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from runs.pools.isolation import Isolation
from runs.pools.scheduled import ScheduledPool
from runs.pools.slurm import Slurm
from runs.pools.travelling import bring
from tests.runs.pools.laboratory import Laboratory
from tests.runs.pools.slurm_cluster import SlurmCluster


def laboratory(
    cluster: SlurmCluster, store: Path, monkeypatch: pytest.MonkeyPatch, isolation: Isolation = Isolation.USER, partition: str = ""
) -> Iterator[Laboratory]:
    """The pool's folder is one of the cluster's own: each node sees it, and it stays from test to test, as the cluster does."""
    monkeypatch.setenv("SLURM_CONF", str(cluster.conf))
    root = cluster.folder / f"runs-{isolation}"
    pool = ScheduledPool(root, isolation, [store], None, Slurm(partition=partition), launcher=bring(root))
    spec = {"root": str(root), "isolation": isolation.value, "hidden": str(store), "scheduler": "slurm", "partition": partition}
    lab = Laboratory(pool, store, spec)
    try:
        yield lab
    finally:
        lab.clear()
