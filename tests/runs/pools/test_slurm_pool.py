"""The pool of a Slurm cluster against a real one of three nodes: the common suite here, the parts that a way over SSH could change, and what a
job must not reach."""

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings

from runs.pools.base import Status
from runs.pools.isolation import Isolation, barrier
from runs.pools.slurm import _gpus
from runs.pools.ssh_thread import close_all
from tests.runs.pools import slurm_laboratory, ssh_laboratory
from tests.runs.pools.conformance import DETACHED, Conformance
from tests.runs.pools.laboratory import REPOSITORY, Laboratory, alive, wait_for
from tests.runs.pools.slurm_cluster import SlurmCluster
from tests.runs.pools.ssh_host import SSHHost
from tests.runs.pools.ssh_laboratory import pool_on
from tests.runs.pools.test_ssh_pool import seen_by_a_run


@pytest.fixture(scope="module")
def cluster() -> Iterator[SlurmCluster]:
    found = SlurmCluster()
    try:
        yield found
    finally:
        found.close()


@pytest.fixture(scope="module")
def host(cluster: SlurmCluster) -> Iterator[SSHHost]:
    """A login node: an account of its own, whose sessions know the cluster."""
    found = SSHHost(more=f"SetEnv SLURM_CONF={cluster.conf}")
    try:
        yield found
    finally:
        close_all()
        found.close()


@pytest.fixture
def lab(cluster: SlurmCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Laboratory]:
    yield from slurm_laboratory.laboratory(cluster, tmp_path, monkeypatch)


@pytest.fixture
def far(host: SSHHost, tmp_path: Path) -> Iterator[Laboratory]:
    for lab in ssh_laboratory.laboratory(host, tmp_path):
        lab.pool = pool_on(host, scheduler={"kind": "slurm", "partition": "main"})
        yield lab


class TestSlurmPool(Conformance):
    """The whole common suite."""


def test_over_ssh_a_job_of_a_plain_account_does_as_any_other(far: Laboratory, cluster: SlurmCluster, host: SSHHost) -> None:
    order, seen = far.run("import sys; print('hello'); sys.exit(7)", secrets={"TOKEN": "s3cret"})
    assert seen.exit is not None
    assert (seen.exit.code, far.log(order)) == (7, "hello\n")
    ended = f"{host.user}|FAILED|NonZeroExitCode"
    wait_for(lambda: cluster.job(order.key, "%u|%T|%r") == ended or None, "its end in Slurm")
    assert not (far.folder(order) / "secrets").exists()
    far.pool.remove(order.workspace, order.key)
    wait_for(lambda: far.look(order).status == Status.MISSING or None, "its being gone")


def test_over_ssh_a_cancel_ends_detached_children_too(far: Laboratory) -> None:
    token = uuid.uuid4().hex
    order = far.start(far.order(DETACHED, token, "stay"))
    far.said(order, "child")
    far.pool.cancel(order.workspace, order.key, grace_seconds=0.1)
    seen = far.ended(order)
    assert seen.exit is not None
    assert seen.exit.reason == "cancelled"
    assert alive(token) == []


def test_over_ssh_what_waits_says_why_and_is_known_to_be_queued(far: Laboratory, cluster: SlurmCluster, host: SSHHost) -> None:
    cluster.run("scontrol", "update", "partitionname=main", "state=down")
    try:
        order = far.start(far.order("pass"))
        seen = far.look(order)
        assert order.key in pool_on(host, scheduler={"kind": "slurm"}).living(order.workspace)
        assert (seen.status, "its partition is down" in seen.reason, seen.native[:4]) == (Status.PENDING, True, "job ")
    finally:
        cluster.run("scontrol", "update", "partitionname=main", "state=up")
    far.ended(order)


def test_a_job_reaches_nothing_of_labsite(lab: Laboratory, far: Laboratory, cluster: SlurmCluster, tmp_path: Path) -> None:
    """Neither as a user of its own, where labsite asks as root, nor as the account that is reached over SSH."""
    (tmp_path / "kept").write_text("of the store")
    targets = [settings.LABSITE_HOME, tmp_path / "kept", cluster.folder / "munge.key"]
    if barrier(REPOSITORY / "manage.py") is not None or os.environ.get("LABSITE_REQUIRE") == "all":
        targets += [REPOSITORY / "manage.py", REPOSITORY / ".venv/pyvenv.cfg"]
    assert all(path.exists() for path in targets)
    for one in (lab, far):
        assert seen_by_a_run(one, [str(path) for path in targets]) == []


def test_the_cluster_says_what_it_is(far: Laboratory, host: SSHHost) -> None:
    found = pool_on(host, scheduler={"kind": "slurm", "partition": "elsewhere"}).probe()
    assert found.engine is not None
    assert (found.engine["version"], found.engine["nodes"]) == ("slurm-wlm 22.05.8", 0)
    assert "There is no partition elsewhere, or it has no nodes." in str(found.engine["warnings"])


@pytest.mark.parametrize(
    ("gres", "count"), [("(null)", 0), ("gpu:8", 8), ("gpu:a100:4(S:0-1),gpu:2", 6), ("gpu:h100:2,nvme:1", 2), ("shard:8", 0)]
)
def test_gpus_are_counted_in_what_slurm_writes(gres: str, count: int) -> None:
    assert _gpus(gres) == count


def test_an_attempt_of_an_isolation_of_its_own_has_its_own_user(lab: Laboratory) -> None:
    assert lab.spec["isolation"] == Isolation.USER
    order, _ = lab.run("import os; print(os.getuid())")
    assert int(lab.log(order)) > 1_000_000_000
