"""The pool of a Slurm cluster against a real one of three nodes: the common suite, and what a job must not reach."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.runs.pools import slurm_laboratory
from tests.runs.pools.conformance import Conformance
from tests.runs.pools.laboratory import Laboratory
from tests.runs.pools.slurm_cluster import SlurmCluster


@pytest.fixture(scope="module")
def cluster() -> Iterator[SlurmCluster]:
    found = SlurmCluster()
    try:
        yield found
    finally:
        found.close()


@pytest.fixture
def lab(cluster: SlurmCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Laboratory]:
    yield from slurm_laboratory.laboratory(cluster, tmp_path, monkeypatch)


class TestSlurmPool(Conformance):
    """The whole common suite."""
