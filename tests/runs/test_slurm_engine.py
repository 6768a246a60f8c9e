"""Slurm as the product has it: a real cluster, asked on this machine or over SSH as a plain account; a run that waits in Slurm's queue, is
watched, collected and settled; and what pages say of it."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.conf import settings
from django.test import Client

from runs.lifecycle import RunStatus
from runs.models import Attempt, Run, Watch
from runs.pools import slurm
from runs.pools.base import Observation, PoolError
from runs.pools.scheduled import ScheduledPool
from runs.pools.ssh_thread import close_all
from tests.factories_pages import client_of
from tests.factories_people import make_operator
from tests.factories_runs import Laboratory, dispatch, drive, launch, make_laboratory, watch, watch_only
from tests.runs.attempts import content, settled
from tests.runs.pools.slurm_cluster import SlurmCluster
from tests.runs.pools.ssh_host import SSHHost
from tests.runs.test_ssh_engine import CODE
from workspaces.audit import Refusal
from workspaces.commands.engine import add_engine
from workspaces.commands.pool import bind_pool, change_pool
from workspaces.commands.secret import create_secret
from workspaces.models import Engine, Pool, Secret

pytestmark = pytest.mark.django_db(transaction=True)

WAITS = b"import os, time\nprint('waiting', flush=True)\nwhile not os.path.exists('../go'):\n    time.sleep(0.05)\n"


@pytest.fixture(scope="module")
def cluster() -> Iterator[SlurmCluster]:
    found = SlurmCluster()
    try:
        yield found
    finally:
        found.close()


@pytest.fixture
def here(cluster: SlurmCluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[SlurmCluster]:
    """The cluster as this machine's own."""
    monkeypatch.setenv("SLURM_CONF", str(cluster.conf))
    yield cluster
    cluster.run("scancel", "--user=root")


@pytest.fixture
def fragile(monkeypatch: pytest.MonkeyPatch) -> Iterator[SlurmCluster]:
    """One of its own, whose controller may be killed."""
    found = SlurmCluster()
    monkeypatch.setenv("SLURM_CONF", str(found.conf))
    try:
        yield found
    finally:
        found.close()


@pytest.fixture
def login_node(cluster: SlurmCluster) -> Iterator[SSHHost]:
    """A host with an account of its own, whose sessions know the cluster."""
    found = SSHHost(more=f"SetEnv SLURM_CONF={cluster.conf}")
    yield found
    close_all()
    found.close()


def slurm_laboratory(code: bytes = CODE, **pool: Any) -> Laboratory:
    """A laboratory with a second pool, `cluster`."""
    laboratory = make_laboratory(code=code)
    add_engine(actor=make_operator(), slug="cluster", kind=Engine.Kind.SLURM, slots=4)
    with laboratory.opened():
        bind_pool(actor=laboratory.owner, engine="cluster", slug="cluster", slots=2, isolation=Pool.Isolation.NONE, **pool)
    return laboratory


def run_of(laboratory: Laboratory) -> Run:
    with laboratory.opened():
        return launch(laboratory, pool="cluster")


def seen(laboratory: Laboratory, run: Run, is_so: Callable[[Watch], bool], cluster: SlurmCluster) -> None:
    """Watch until what is seen of the run's attempt is so."""

    def look() -> bool:
        watch(laboratory)
        with laboratory.opened():
            return is_so(Watch.objects.get(attempt__run=run))

    cluster.wait(look, "the watch")


def test_a_run_on_slurm_is_collected_scored_and_settled_like_any_other(here: SlurmCluster) -> None:
    laboratory = slurm_laboratory()
    run = drive(laboratory, run_of(laboratory))
    assert run.status == "succeeded", run.reason
    with laboratory.opened():
        assert content(laboratory, run, "model.txt") == b"weights"
        assert run.evaluations.get().value == 0.75
        assert run.spent_gpu_ms > 0
        key = Attempt.objects.get(run=run).key
    assert here.job(key, "%T|%k") == f"COMPLETED|{key}"
    settled(laboratory)


def test_over_ssh_as_a_plain_account_it_is_the_same(login_node: SSHHost, cluster: SlurmCluster) -> None:
    laboratory = make_laboratory(code=CODE)
    add_engine(
        actor=make_operator(), slug="ssh-a100-west", kind=Engine.Kind.SLURM, slots=4, gpu_kind="", host="127.0.0.1", port=login_node.port,
        host_key=login_node.pinned,
    )  # fmt: skip
    with laboratory.opened():
        create_secret(actor=laboratory.owner, name="CLUSTER_KEY", kind=Secret.Kind.SSH_KEY, value=login_node.private_key)
        bind_pool(
            actor=laboratory.owner, engine="ssh-a100-west", slug="cluster", slots=2, isolation=Pool.Isolation.NONE, login=login_node.user,
            folder=str(login_node.home / "labsite"), secret="CLUSTER_KEY", partition="urgent",
        )  # fmt: skip
    run = drive(laboratory, run_of(laboratory))
    assert run.status == "succeeded", run.reason
    with laboratory.opened():
        key = Attempt.objects.get(run=run).key
    assert cluster.job(key, "%P|%u") == f"urgent|{login_node.user}"
    settled(laboratory)
    browser: Client = client_of(laboratory.owner)
    browser.post("/workspaces/lab/pools/cluster/test/")
    page = browser.get("/workspaces/lab/pools/cluster/").content.decode()
    assert f"answers as {login_node.user}" in page
    assert "Slurm answers: slurm-wlm 22.05.8, 3 nodes." in page


def test_a_run_that_waits_in_the_queue_of_slurm_says_why_and_starts_when_it_may(here: SlurmCluster) -> None:
    laboratory = slurm_laboratory()
    here.run("scontrol", "update", "partitionname=main", "state=down")
    try:
        run = run_of(laboratory)
        dispatch(laboratory)
        seen(laboratory, run, lambda watch: "its partition is down (PartitionDown)" in watch.observed_reason, here)
        with laboratory.opened():
            assert Run.objects.get(pk=run.pk).status == "starting"
            key = Attempt.objects.get(run=run).key
        page = client_of(laboratory.owner).get(f"/workspaces/lab/runs/{run.public_id}/").content.decode()
        assert "Slurm keeps it waiting: its partition is down" in page
        watch_only(laboratory)
        assert len(here.run("squeue", "-h", "-t", "all", f"--name={key}").splitlines()) == 1
    finally:
        here.run("scontrol", "update", "partitionname=main", "state=up")
    assert drive(laboratory, run).status == "succeeded"
    settled(laboratory)


def test_an_answer_that_is_lost_right_after_the_submission_fails_nothing(here: SlurmCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    laboratory = slurm_laboratory()
    here.run("scontrol", "update", "partitionname=main", "state=down")
    observe, lost = ScheduledPool.observe, ["the first"]

    def lose(pool: ScheduledPool, workspace: str, key: str) -> Observation:
        if lost:
            raise PoolError(f"{lost.pop()} answer was lost")
        return observe(pool, workspace, key)

    monkeypatch.setattr(ScheduledPool, "observe", lose)
    try:
        run = run_of(laboratory)
        dispatch(laboratory)
        assert not lost
        seen(laboratory, run, lambda watch: "PartitionDown" in watch.observed_reason, here)
    finally:
        here.run("scontrol", "update", "partitionname=main", "state=up")
    assert drive(laboratory, run).status == "succeeded"
    settled(laboratory)


def test_a_cancelled_run_that_waits_leaves_nothing_in_the_queue_of_slurm(here: SlurmCluster) -> None:
    laboratory = slurm_laboratory()
    here.run("scontrol", "update", "partitionname=main", "state=down")
    try:
        run = run_of(laboratory)
        dispatch(laboratory)
        seen(laboratory, run, lambda watch: "PartitionDown" in watch.observed_reason, here)
        browser: Client = client_of(laboratory.owner)
        browser.post(f"/workspaces/lab/runs/{run.public_id}/cancel/", {"reason": "wrong data"})
        assert drive(laboratory, run).status == "cancelled"
        with laboratory.opened():
            assert here.job(Attempt.objects.get(run=run).key) == "CANCELLED"
    finally:
        here.run("scontrol", "update", "partitionname=main", "state=up")
    settled(laboratory)


def test_a_controller_that_is_away_changes_nothing(fragile: SlurmCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    laboratory = slurm_laboratory(WAITS)
    fragile.run("scontrol", "update", "partitionname=main", "state=down")
    run = run_of(laboratory)
    dispatch(laboratory)
    monkeypatch.setattr(slurm, "CALL_SECONDS", 1.0)  # squeue itself would wait for 18 s
    with laboratory.opened():
        attempt = Attempt.objects.get(run=run)
    fragile.saved(attempt.key)
    fragile.kill_controller()
    try:
        seen(laboratory, run, lambda watch: watch.observed == "unknown", fragile)
        with laboratory.opened():
            assert Run.objects.get(pk=run.pk).status == "starting"
            assert "Slurm" in Watch.objects.get(attempt__run=run).observed_reason
    finally:
        fragile.start_controller()  # which finds in its file that the partition is up
        fragile.wait(lambda: bool(fragile.run("sinfo", "-h")), "the controller")
    drive(laboratory, run, until=frozenset({RunStatus.RUNNING}))
    (settings.LABSITE_RUNS / "runs" / laboratory.workspace.pk.hex / attempt.key / "go").touch()
    assert drive(laboratory, run).status == "succeeded"
    settled(laboratory)


def test_what_slurm_refuses_is_said_in_its_own_words(here: SlurmCluster) -> None:
    laboratory = slurm_laboratory(partition="nowhere")
    run = drive(laboratory, run_of(laboratory))
    assert run.status == "failed"
    assert "Slurm refused" in run.reason
    assert "invalid partition" in run.reason
    with laboratory.opened():
        change_pool(actor=laboratory.owner, pool=Pool.objects.get(slug="cluster"), partition="main")
    assert drive(laboratory, run_of(laboratory)).status == "succeeded"
    settled(laboratory)


def test_a_job_that_somebody_ends_at_slurm_ends_the_run_and_says_so(here: SlurmCluster) -> None:
    laboratory = slurm_laboratory(WAITS)
    run = drive(laboratory, run_of(laboratory), until=frozenset({RunStatus.RUNNING}))
    with laboratory.opened():
        here.run("scancel", f"--name={Attempt.objects.get(run=run).key}")
    run = drive(laboratory, run)
    assert run.status == "failed"
    assert run.reason_code == "engine_cancelled"
    assert "nobody had asked for that here. Slurm says that job" in run.reason
    settled(laboratory)


def test_the_page_tests_the_connection_and_says_that_slurm_keeps_no_accounts(here: SlurmCluster) -> None:
    laboratory = slurm_laboratory(partition="nowhere")
    browser: Client = client_of(laboratory.owner)
    browser.post("/workspaces/lab/pools/cluster/test/")
    page = browser.get("/workspaces/lab/pools/cluster/").content.decode()
    assert "Slurm answers: slurm-wlm" in page
    assert "There is no partition nowhere" in page
    assert "keeps no accounts here" in page
    assert "reached from this machine" in page


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"partition": "a b"}, "A name that Slurm knows as partition"),
        ({"account": "x;y"}, "A name that Slurm knows as account"),
        ({"login": "labpool"}, "is reached from this machine"),
        ({"folder": "/etc"}, "is reached from this machine"),
        ({"engine": "local", "partition": "gpu"}, "is not Slurm"),
    ],
)
def test_a_pool_that_could_not_work_is_refused_with_the_reason(values: dict[str, str], words: str) -> None:
    laboratory = make_laboratory()
    add_engine(actor=make_operator(), slug="cluster", kind=Engine.Kind.SLURM, slots=4)
    with laboratory.opened():
        with pytest.raises(Refusal, match=words):
            bind_pool(actor=laboratory.owner, slug="cluster", slots=1, isolation=Pool.Isolation.NONE, **{"engine": "cluster", **values})  # type: ignore[arg-type]  # test input
        assert Pool.objects.count() == 1
