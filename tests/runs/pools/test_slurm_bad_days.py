"""What happens to a pool on Slurm on bad days: each against a real cluster, some with one of its commands behaving as it does elsewhere."""

import json
import os
import shutil
import signal
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from runs.pools import local, scheduled, slurm
from runs.pools.base import Order, PoolError, Status
from runs.pools.folder import remove_tree
from runs.pools.isolation import Isolation
from runs.pools.scheduled import ScheduledPool
from runs.pools.slurm import Slurm
from runs.pools.travelling import bring
from tests.runs.pools import slurm_laboratory
from tests.runs.pools.laboratory import Laboratory, alive, wait_for
from tests.runs.pools.slurm_cluster import PATHS, SlurmCluster
from tests.runs.pools.slurm_laboratory import end_of, forget, queue, seen_as

WAITS = "import os, sys, time; open('../metrics.jsonl', 'a').write('x'); print('up', flush=True); time.sleep(60)"


@pytest.fixture(scope="module")
def cluster() -> Iterator[SlurmCluster]:
    found = SlurmCluster()
    try:
        yield found
    finally:
        found.close()


@pytest.fixture
def lab(cluster: SlurmCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Laboratory]:
    forget()
    yield from slurm_laboratory.laboratory(cluster, tmp_path, monkeypatch, Isolation.NONE)
    forget()


@pytest.fixture
def queued(cluster: SlurmCluster, lab: Laboratory) -> Iterator[Order]:
    try:
        yield queue(lab, cluster)
    finally:
        cluster.run("scontrol", "update", "partitionname=main", "state=up")


@pytest.fixture
def command(lab: Laboratory, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator["Commands"]:
    """Gone before the laboratory ends what is left in it."""
    found = Commands(monkeypatch, tmp_path / "commands")
    yield found
    shutil.rmtree(found.folder)
    forget()


class Commands:
    """Slurm's programs, one of which can be replaced by a script, in which `real` is the program itself."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        monkeypatch.setenv("PATH", f"{folder}:{PATHS}")

    def replace(self, name: str, script: str) -> None:
        path = self.folder / name
        path.write_text(f"#!/bin/sh\nreal={shutil.which(name, path=PATHS)}\n{script}\n")
        path.chmod(0o755)
        forget()

    def restore(self, name: str) -> None:
        (self.folder / name).unlink()
        forget()


def jobs(cluster: SlurmCluster, order: Order) -> list[str]:
    """States of all jobs of the attempt."""
    return cluster.run("squeue", "-h", "-a", "-t", "all", f"--name={order.key}", "-o", "%T").split()


def launcher(lab: Laboratory, order: Order) -> int:
    return int(json.loads((lab.folder(order) / "state/pid.json").read_text())["launcher"]["pid"])


def move_elsewhere(lab: Laboratory, order: Order) -> None:
    """Make the launcher one of another machine: this one was not booted when that one was."""
    path = lab.folder(order) / "state" / "lock"
    lock = json.loads(path.read_text())
    lock["launcher"]["boot_id"] = str(uuid.uuid4())
    path.write_text(json.dumps(lock))


# --- The controller -----------------------------------------------------------------------------------------------------------------------


def test_a_job_of_our_name_with_another_comment_is_neither_ours_nor_a_reason_to_submit(lab: Laboratory, cluster: SlurmCluster) -> None:
    order = lab.order("pass")
    cluster.run("sbatch", f"--job-name={order.key}", "--comment=other", "--output=/dev/null", "--wrap=sleep 60")
    assert "another comment, 'other'" in seen_as(lab, order, Status.UNKNOWN).reason
    lab.pool.submit(order)
    assert len(jobs(cluster, order)) == 1
    cluster.run("scancel", f"--name={order.key}")


def test_an_answer_that_is_lost_after_the_submission_starts_nothing_twice(
    lab: Laboratory, cluster: SlurmCluster, command: Commands
) -> None:
    order = lab.order("open('../metrics.jsonl', 'a').write('x')")
    command.replace("sbatch", '"$real" "$@" >/dev/null; echo "sbatch: error: Batch job submission failed: Socket timed out" >&2; exit 1')
    for _ in range(3):
        lab.pool.submit(order)
    command.restore("sbatch")
    lab.pool.submit(order)
    assert end_of(lab, order)[:2] == (0, "exit")
    assert len(jobs(cluster, order)) == 1
    assert lab.log(order, "metrics.jsonl") == "x"


def test_two_jobs_of_one_attempt_run_it_once(lab: Laboratory, cluster: SlurmCluster, command: Commands, queued: Order) -> None:
    """A controller that showed the first job to nobody, and shows it again later."""
    command.replace("squeue", "exit 0")
    lab.pool.submit(queued)
    command.restore("squeue")
    assert jobs(cluster, queued) == ["PENDING", "PENDING"]
    cluster.run("scontrol", "update", "partitionname=main", "state=up")
    assert end_of(lab, queued)[:2] == (0, "exit")
    wait_for(lambda: jobs(cluster, queued) == ["COMPLETED", "COMPLETED"] or None, "the end of both jobs")
    assert lab.log(queued, "metrics.jsonl") == "x"


# --- Ends that nobody here asked for ------------------------------------------------------------------------------------------------------


def test_a_node_that_fails_loses_the_attempt_and_is_named(lab: Laboratory, cluster: SlurmCluster) -> None:
    token = uuid.uuid4().hex
    order = lab.start(lab.order(WAITS, token))
    lab.said(order, "up")
    node = cluster.job(order.key, "%N")
    cluster.kill_node(node, jobs=True)
    cluster.run("scontrol", "update", f"nodename={node}", "state=down", "reason=power")
    try:
        code, reason, words = end_of(lab, order)
        assert (code, reason) == (None, "launcher_lost")
        assert "NODE_FAIL" in words
        assert alive(token) == []
    finally:
        cluster.start_node(node)
        cluster.run("scontrol", "update", f"nodename={node}", "state=resume")
        cluster.ready()


def test_a_node_that_fails_elsewhere_is_judged_by_its_silence_and_by_slurm(
    lab: Laboratory, cluster: SlurmCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = lab.start(lab.order(WAITS))
    lab.said(order, "up")
    move_elsewhere(lab, order)
    assert lab.look(order).status == Status.RUNNING
    monkeypatch.setattr(scheduled, "FRESH_SECONDS", 1.5)
    os.kill(launcher(lab, order), signal.SIGSTOP)
    seen_as(lab, order, Status.UNKNOWN, "s; Slurm says RUNNING")
    os.kill(launcher(lab, order), signal.SIGCONT)
    seen_as(lab, order, Status.RUNNING)
    assert jobs(cluster, order) == ["RUNNING"], "a while of silence ends nobody"
    monkeypatch.setattr(scheduled, "STILL_SECONDS", 2.0)
    os.kill(launcher(lab, order), signal.SIGSTOP)
    seen_as(lab, order, Status.UNKNOWN, "Slurm is asked to stop job")
    assert end_of(lab, order)[1] == "cancelled"  # Slurm wakes what it ends; not asked for here, so the run goes back to the queue


def test_a_clock_that_is_off_makes_nobody_silent(lab: Laboratory, monkeypatch: pytest.MonkeyPatch) -> None:
    order = lab.start(lab.order(WAITS))
    lab.said(order, "up")
    move_elsewhere(lab, order)
    now = time.time
    for hours in (-1, 1):
        monkeypatch.setattr(time, "time", lambda hours=hours: now() + hours * 3600)
        assert lab.look(order).status == Status.RUNNING
    monkeypatch.setattr(time, "time", now)


def test_a_run_elsewhere_that_writes_its_own_end_is_watched_on(lab: Laboratory, monkeypatch: pytest.MonkeyPatch) -> None:
    order = lab.start(lab.order(WAITS))
    lab.said(order, "up")
    move_elsewhere(lab, order)
    state = lab.folder(order) / "state"
    (state / "exit.json").write_text(json.dumps({"code": 0, "started_at": 1.0, "ended_at": 2.0, "reason": "exit"}))
    seen_as(lab, order, Status.RUNNING, "an end is written, its launcher lives")
    pid = launcher(lab, order)
    lab.pool.cancel(order.workspace, order.key, grace_seconds=0)
    wait_for(lambda: None if Path(f"/proc/{pid}").exists() else True, "the end of the launcher")
    monkeypatch.setattr(scheduled, "FRESH_SECONDS", 2.0)
    assert end_of(lab, order)[:2] == (0, "exit")


def test_a_job_cancelled_by_somebody_while_it_waits(lab: Laboratory, cluster: SlurmCluster, queued: Order) -> None:
    cluster.run("scancel", f"--name={queued.key}")
    code, reason, words = end_of(lab, queued)
    assert (code, reason) == (None, "engine_cancelled")
    assert "CANCELLED" in words
    cluster.run("scontrol", "update", "partitionname=main", "state=up")
    lab.pool.submit(queued)
    assert jobs(cluster, queued) == ["CANCELLED"]


def test_a_job_cancelled_by_somebody_while_it_runs(lab: Laboratory, cluster: SlurmCluster) -> None:
    order = lab.start(lab.order(WAITS))
    lab.said(order, "up")
    cluster.run("scancel", f"--name={order.key}")
    assert end_of(lab, order)[1] == "engine_cancelled"


def test_an_end_that_falls_between_two_looks_at_the_folder_is_explained(
    lab: Laboratory, cluster: SlurmCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = lab.start(lab.order(WAITS))
    lab.said(order, "up")
    is_watched = local.is_watched

    def ends_meanwhile(lock: dict[str, object]) -> bool:
        lives = is_watched(lock)
        monkeypatch.setattr(scheduled, "is_watched", is_watched)
        cluster.run("scancel", f"--name={order.key}")
        wait_for(lambda: not is_watched(lock) or None, "the end of the launcher")
        return lives

    monkeypatch.setattr(scheduled, "is_watched", ends_meanwhile)
    assert end_of(lab, order)[1] == "engine_cancelled"


def test_what_slurm_said_before_an_end_does_not_explain_it(lab: Laboratory, cluster: SlurmCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster.run("scontrol", "update", "partitionname=main", "state=down")
    order = lab.start(lab.order(WAITS))
    monkeypatch.setattr(slurm, "LISTED_SECONDS", 60.0)
    seen_as(lab, order, Status.PENDING, "Slurm keeps it waiting")
    cluster.run("scontrol", "update", "partitionname=main", "state=up")
    lab.said(order, "up")
    cluster.run("scancel", f"--name={order.key}")
    assert end_of(lab, order)[1] == "engine_cancelled"


def test_a_job_that_is_preempted_is_interrupted(lab: Laboratory, cluster: SlurmCluster) -> None:
    order = lab.start(lab.order(WAITS))
    lab.said(order, "up")
    node = cluster.job(order.key, "%N")
    cluster.run(
        "sbatch", "--partition=urgent", f"--nodelist={node}", "--exclusive", "--job-name=urgent", "--output=/dev/null", "--wrap=sleep 60"
    )
    assert end_of(lab, order)[1] == "cancelled"  # not asked for here: the run goes back to the queue
    cluster.wait(lambda: cluster.job(order.key) == "PREEMPTED", "the word of Slurm")
    cluster.run("scancel", "--name=urgent")


def test_a_job_that_is_requeued_outside_starts_no_second_time(lab: Laboratory, cluster: SlurmCluster) -> None:
    order = lab.start(lab.order(WAITS))
    lab.said(order, "up")
    number = cluster.job(order.key, "%i")
    cluster.run("scontrol", "update", f"jobid={number}", "requeue=1")
    cluster.run("scontrol", "requeue", number)
    assert end_of(lab, order)[1] in ("cancelled", "launcher_lost")
    wait_for(lambda: (lab.look(order), jobs(cluster, order))[1] in (["CANCELLED"], ["COMPLETED"]) or None, "the end of the job")
    assert lab.log(order, "metrics.jsonl") == "x"


def test_a_launcher_that_hangs_is_ended_by_slurm_after_the_grace(
    lab: Laboratory, cluster: SlurmCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduled, "STOP_SECONDS", 0.2)
    order = lab.start(lab.order(WAITS))
    lab.said(order, "up")
    os.kill(launcher(lab, order), signal.SIGSTOP)

    def ask() -> bool | None:
        lab.pool.cancel(order.workspace, order.key, grace_seconds=0)
        return True if lab.look(order).status == Status.EXITED else None

    wait_for(ask, "the end")
    assert end_of(lab, order)[1] == "cancelled"


def test_a_node_without_python_fails_the_attempt_with_its_words(lab: Laboratory, cluster: SlurmCluster) -> None:
    root = Path(lab.spec["root"])
    broken = ScheduledPool(root, Isolation.NONE, [], None, Slurm(), launcher=bring(root), interpreter="python9")
    order = lab.order("pass")
    broken.submit(order)
    code, reason, words = end_of(lab, order)
    assert (code, reason) == (None, "engine_failed")
    assert "python9: not found" in words


def test_a_folder_that_is_gone_while_its_job_waits_takes_the_job_with_it(lab: Laboratory, cluster: SlurmCluster, queued: Order) -> None:
    remove_tree(lab.folder(queued))
    seen_as(lab, queued, Status.UNKNOWN, "the run folder is gone")
    seen_as(lab, queued, Status.MISSING)
    assert jobs(cluster, queued) == ["CANCELLED"]


# --- What is asked, and what is said ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("more", "words"), [({"resources": {"slots": 999}}, "Slurm refused"), ({"resources": {"slots": 1, "gpus": 2}}, "Slurm refused")]
)
def test_what_no_node_could_run_is_refused_in_words(lab: Laboratory, cluster: SlurmCluster, more: dict[str, object], words: str) -> None:
    order = lab.order("pass", **more)  # type: ignore[arg-type]  # part of the job
    with pytest.raises(PoolError, match=words):
        lab.pool.submit(order)
    assert jobs(cluster, order) == []


def test_a_state_that_was_never_seen_is_unknown_and_said(lab: Laboratory, command: Commands, queued: Order) -> None:
    command.replace("squeue", f'echo "7|{queued.key}|{queued.key}|LEVITATING|None"')
    assert "'LEVITATING' of job 7, which labsite does not know" in seen_as(lab, queued, Status.UNKNOWN).reason
    command.replace("squeue", "echo 'slurm_load_jobs error: Invalid user' >&2; exit 1")
    assert "Invalid user" in seen_as(lab, queued, Status.UNKNOWN).reason
    command.restore("squeue")
    seen_as(lab, queued, Status.PENDING)


def test_a_reason_of_any_words_hides_no_job(lab: Laboratory, cluster: SlurmCluster, command: Commands, queued: Order) -> None:
    """Plugins write reasons of their own; a job that is not read is submitted again."""
    command.replace("squeue", f'echo "7|{queued.key}|{queued.key}|PENDING|burst_buffer|stage-in: a|b"')
    assert "a|b" in seen_as(lab, queued, Status.PENDING).reason
    lab.pool.submit(queued)
    command.restore("squeue")
    assert len(jobs(cluster, queued)) == 1


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", "not with Slurm yet"),
        ("9|{key}|{key}|RUNNING|0:0", "not with Slurm yet"),  # accounts lag behind
        ("9|{key}|other|FAILED|1:0", "not with Slurm yet"),
        ("9|{key}|{key}|CANCELLED by 1000|0:0", "CANCELLED by 1000"),
    ],
)
def test_accounts_are_believed_for_an_end_only(lab: Laboratory, command: Commands, queued: Order, line: str, expected: str) -> None:
    command.replace("squeue", "exit 0")
    command.replace("sacct", f"echo '{line.format(key=queued.key)}'")
    seen = lab.look(queued)
    assert expected in seen.reason
    assert seen.status == (Status.EXITED if "CANCELLED" in expected else Status.PENDING)


def test_a_silent_command_is_given_up_in_time(lab: Laboratory, command: Commands, queued: Order, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slurm, "CALL_SECONDS", 0.3)
    command.replace("squeue", "sleep 20")
    assert "did not answer squeue" in seen_as(lab, queued, Status.UNKNOWN).reason
    monkeypatch.setattr(slurm, "CALL_SECONDS", 12.0)


def test_the_job_inherits_neither_environment_nor_request_beyond_its_own(
    lab: Laboratory, cluster: SlurmCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LABSITE_TEST_LEAK", "leaked")
    order = lab.start(lab.order(WAITS, limits={"wall_seconds": 300, "memory_bytes": 100 << 20}, resources={"slots": 3}))
    lab.said(order, "up")
    assert b"leaked" not in Path(f"/proc/{launcher(lab, order)}/environ").read_bytes()
    assert cluster.job(order.key, "%C|%m|%l") == "3|164M|8:00"


def test_the_finder_of_orphans_sees_what_waits_and_runs_and_nobody_elses(lab: Laboratory, cluster: SlurmCluster, queued: Order) -> None:
    cluster.run("sbatch", "--job-name=lab-somebody", "--output=/dev/null", "--wrap=sleep 60")
    assert isinstance(lab.pool, ScheduledPool)
    assert lab.pool.living(queued.workspace) == [queued.key]
    assert lab.pool.living("f" * 32) == [queued.key], "what the engine has, also where its folder is not"
    lab.pool.cancel(queued.workspace, queued.key, grace_seconds=0)
    assert end_of(lab, queued)[1] == "cancelled"
    assert lab.pool.living(queued.workspace) == []
    cluster.run("scancel", "--name=lab-somebody")


def test_bad_words_of_a_request_reach_no_command() -> None:
    for bad in ("a b", "a;b", "--x=y", "a\n", "x" * 65):
        with pytest.raises(PoolError):
            Slurm(partition=bad) if bad != "--x=y" else Slurm(account="a=b")
