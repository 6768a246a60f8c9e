"""A Laboratory whose pool is a SlurmCluster, asked on this machine."""

import tempfile
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
