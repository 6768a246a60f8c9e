"""Ray as the product has it: a real head that is asked over SSH by a plain account, or from this machine."""

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from runs.models import Attempt, Run, Watch
from runs.pools import ray
from runs.pools.base import Status
from runs.pools.ray import RayJobs
from runs.pools.scheduler import Launch
from tests.factories_pages import client_of
from tests.factories_people import make_operator
from tests.factories_runs import Laboratory, dispatch, drive, launch, make_laboratory, watch
from tests.runs.attempts import content, settled, until
from tests.runs.pools.ray_head import CPUS, RayHead
from tests.runs.pools.ssh_host import AS_ROOT
from tests.runs.test_ssh_engine import CODE
from workspaces.commands.engine import add_engine
from workspaces.commands.pool import bind_pool
from workspaces.commands.secret import create_secret
from workspaces.models import Engine, Pool, Secret

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.ray,
    pytest.mark.timeout(240),  # the head takes its time
]


@pytest.fixture
def jobs(ray_head: RayHead) -> Iterator[RayJobs]:
    ray._SILENT.clear()
    yield RayJobs(ray_head.url)
    ray._SILENT.clear()


def ray_laboratory(head: RayHead) -> Laboratory:
    """A laboratory with a second pool, `cluster`, that is asked on the head's host."""
    laboratory, host = make_laboratory(code=CODE), head.host
    add_engine(
        actor=make_operator(), slug="ray", kind=Engine.Kind.RAY, slots=CPUS, jobs_url=head.url, host="127.0.0.1", port=host.port,
        host_key=host.pinned,
    )  # fmt: skip
    with laboratory.opened():
        create_secret(actor=laboratory.owner, name="RAY_KEY", kind=Secret.Kind.SSH_KEY, value=host.private_key)
        bind_pool(
            actor=laboratory.owner, engine="ray", slug="cluster", slots=2, isolation=Pool.Isolation.NONE, login=host.user,
            folder=str(host.home / "labsite"), secret="RAY_KEY",
        )  # fmt: skip
    return laboratory


def run_of(laboratory: Laboratory, **asked: Any) -> Run:
    with laboratory.opened():
        return launch(laboratory, pool="cluster", **asked)


def key_of(laboratory: Laboratory, run: Run) -> str:
    with laboratory.opened():
        return Attempt.objects.get(run=run).key


def test_a_run_on_ray_is_collected_scored_and_settled_like_any_other(ray_head: RayHead, jobs: RayJobs) -> None:
    laboratory = ray_laboratory(ray_head)
    run = drive(laboratory, run_of(laboratory))
    assert run.status == "succeeded", run.reason
    with laboratory.opened():
        assert content(laboratory, run, "model.txt") == b"weights"
        assert run.evaluations.get().value == 0.75
        assert run.spent_gpu_ms > 0
    key = key_of(laboratory, run)
    until(lambda: "SUCCEEDED" in jobs.look(key).reason, "the end of the job in Ray")
    settled(laboratory)
    browser: Client = client_of(laboratory.owner)
    browser.post("/workspaces/lab/pools/cluster/test/")
    page = browser.get("/workspaces/lab/pools/cluster/").content.decode()
    assert "Ray answers: 2." in page
    assert "The Jobs API answers without authentication" in page


def test_a_run_that_waits_in_ray_says_so_and_can_be_cancelled_although_ray_cannot_stop_it(ray_head: RayHead, jobs: RayJobs) -> None:
    laboratory, other = ray_laboratory(ray_head), f"lab-1-{uuid.uuid4().hex}"
    jobs.submit(Launch(other, ["/bin/sleep", "200"], Path("/"), slots=CPUS, gpus=0, wall_seconds=200, memory_bytes=None))
    try:
        until(lambda: jobs.look(other).status == Status.RUNNING, "another job that takes all of Ray")
        run = run_of(laboratory)
        dispatch(laboratory)

        def waits() -> bool:
            watch(laboratory)
            with laboratory.opened():
                return "Ray keeps it waiting" in Watch.objects.get(attempt__run=run).observed_reason

        until(waits, "Ray's own queue")
        browser: Client = client_of(laboratory.owner)
        assert "Ray keeps it waiting" in browser.get(f"/workspaces/lab/runs/{run.public_id}/").content.decode()
        browser.post(f"/workspaces/lab/runs/{run.public_id}/cancel/", {"reason": "wrong data"})
        assert drive(laboratory, run).status == "cancelled"
        settled(laboratory)
        key = key_of(laboratory, run)
        assert jobs.look(key).status == Status.PENDING
    finally:
        jobs.stop(other)
    until(lambda: jobs.look(key).status == Status.EXITED, "the late start that does nothing")
    with laboratory.opened():
        assert Run.objects.get(pk=run.pk).spent_gpu_ms == 0


@pytest.mark.skipif(not AS_ROOT, reason="an account of its own for Ray needs root")
def test_a_ray_that_cannot_read_the_run_folder_fails_the_run_with_its_words(ray_head: RayHead) -> None:
    laboratory = make_laboratory(code=CODE)
    add_engine(actor=make_operator(), slug="ray", kind=Engine.Kind.RAY, slots=CPUS, jobs_url=ray_head.url)
    with laboratory.opened():
        bind_pool(actor=laboratory.owner, engine="ray", slug="cluster", slots=2, isolation=Pool.Isolation.NONE)
    run = drive(laboratory, run_of(laboratory))
    assert run.status == "failed"
    assert run.reason_code == "engine_failed"
    assert "Permission denied" in run.reason
    settled(laboratory)
