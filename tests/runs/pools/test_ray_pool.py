"""The pool of a Ray cluster against a real head, which runs jobs as an account that sees nothing of labsite."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from runs.pools.isolation import barrier
from tests.runs.pools import ray_laboratory, ssh_laboratory
from tests.runs.pools.conformance import Conformance
from tests.runs.pools.laboratory import REPOSITORY, Laboratory
from tests.runs.pools.ray_head import CPUS, GPUS, RayHead
from tests.runs.pools.ssh_host import AS_ROOT
from tests.runs.pools.test_ssh_pool import seen_by_a_run

pytestmark = [pytest.mark.ray, pytest.mark.timeout(240)]  # the head takes its time


@pytest.fixture
def lab(ray_head: RayHead, tmp_path: Path) -> Iterator[Laboratory]:
    yield from ray_laboratory.laboratory(ray_head, tmp_path)


class TestRayPool(Conformance):
    """The whole common suite."""


@pytest.mark.skipif(not AS_ROOT, reason="an account of its own for Ray needs root")
def test_a_run_on_ray_reaches_nothing_of_labsite(lab: Laboratory, tmp_path: Path) -> None:
    home = tmp_path / "labsite-home"
    (home / "keys").mkdir(parents=True, mode=0o700)
    home.chmod(0o700)
    (home / "keys/secret.key").write_text("secret")
    targets = [str(home), str(home / "keys/secret.key"), str(lab.store), lab.spec["private_key_file"]]
    if barrier(REPOSITORY / "manage.py") is not None or os.environ.get("LABSITE_REQUIRE") == "all":
        # Not the repository's own folder: the environment of Ray lies in it, which its account is shown.
        targets += [
            str(REPOSITORY / name) for name in ("manage.py", "runs", "labsite/settings.py", ".git", ".venv/pyvenv.cfg", ".venv/bin")
        ]
    assert all(os.path.exists(path) for path in targets)
    assert seen_by_a_run(lab, targets) == []
    assert seen_by_a_run(lab, ["/etc/passwd"]) == ["/etc/passwd"]


def test_ray_says_what_it_is_and_that_it_answers_anybody(ray_head: RayHead) -> None:
    found = ssh_laboratory.pool_on(ray_head.host, scheduler={"kind": "ray", "jobs_url": ray_head.url}).probe().engine
    assert found is not None
    warnings = found["warnings"]
    assert isinstance(warnings, list)
    assert {name: found[name] for name in ("nodes", "cpus", "gpus")} == {"nodes": 1, "cpus": CPUS, "gpus": GPUS}
    assert str(found["version"]).startswith("2.")
    assert ["answers without authentication" in str(one) for one in warnings] == [True]


def test_a_run_is_told_which_gpus_ray_has_given_to_it_and_cannot_name_others(lab: Laboratory) -> None:
    script = "import os, time; print(os.environ.get('CUDA_VISIBLE_DEVICES'), flush=True); time.sleep(60)"
    asked = {"resources": {"slots": 1, "gpus": 1}, "env": {"CUDA_VISIBLE_DEVICES": "0,1"}}
    orders = [lab.start(lab.order(script, **asked)) for _ in range(GPUS)]  # type: ignore[arg-type]  # passed on as it is
    for order in orders:
        lab.said(order, "\n")
    assert sorted(lab.log(order) for order in orders) == ["0\n", "1\n"]
    for order in orders:
        lab.pool.cancel(order.workspace, order.key, grace_seconds=0)
        lab.ended(order)
