"""The sweep of the Go laboratory on all four pools: the same members, the same scores, and the same checkpoints bit for bit.

Every pool runs it as an account that sees nothing of the repository (test_a_job_reaches_nothing_of_labsite and its like of each pool): what a
run knows comes out of the agent's bundle and the files of its dataset.
"""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from labsite.examples.autogo import plan
from labsite.examples.autogo.bundles import bundle_files
from labsite.examples.ground import make_agent
from runs.commands.sweep import create_sweep
from runs.jobs.advance import advance_sweep
from runs.launch import LaunchRequest
from runs.models import Artifact, Attempt, Evaluation, Run, Sweep
from runs.pools.ssh_thread import close_all
from tests.examples.autogo.bundle import start
from tests.factories_people import make_operator
from tests.factories_runs import Laboratory, dispatch, make_laboratory, watch
from tests.runs.attempts import settled
from tests.runs.pools.ray_head import CPUS, RayHead
from tests.runs.pools.slurm_cluster import SlurmCluster
from tests.runs.pools.ssh_host import SSHHost
from workspaces.commands.benchmark import create_benchmark
from workspaces.commands.blob import receive_file
from workspaces.commands.dataset import create_dataset, import_dataset_version
from workspaces.commands.engine import add_engine
from workspaces.commands.pool import bind_pool
from workspaces.commands.secret import create_secret
from workspaces.models import Engine, Pool, Secret

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.ray, pytest.mark.timeout(400)]

POOLS = ("local", "ssh", "slurm", "ray")
SPACE = {"kind": "grid", "axes": {"learning_rate": [0.001, 0.004]}, "seeds": [7]}
QUICK = {"epochs": 3, "match_games": 8, "simulations": 8}


@pytest.fixture
def cluster() -> Iterator[SlurmCluster]:
    found = SlurmCluster()
    yield found
    found.close()


@pytest.fixture
def login_node(cluster: SlurmCluster) -> Iterator[SSHHost]:
    """Both the host of the pool `ssh`, and the one on which Slurm is asked."""
    found = SSHHost(more=f"SetEnv SLURM_CONF={cluster.conf}")
    yield found
    close_all()
    found.close()


def far_pool(laboratory: Laboratory, slug: str, kind: str, host: SSHHost, environment: Path, **engine: Any) -> None:
    add_engine(
        actor=make_operator(slug), slug=slug, kind=kind, slots=CPUS, host="127.0.0.1", port=host.port, host_key=host.pinned, **engine
    )
    with laboratory.opened():
        create_secret(actor=laboratory.owner, name=f"{slug.upper()}_KEY", kind=Secret.Kind.SSH_KEY, value=host.private_key)
        bind_pool(
            actor=laboratory.owner, engine=slug, slug=slug, slots=2, isolation=Pool.Isolation.NONE, login=host.user,
            folder=str(host.home / f"labsite-{slug}"), python=str(environment), secret=f"{slug.upper()}_KEY",
        )  # fmt: skip


def go_laboratory(games: list[Path]) -> Laboratory:
    """The benchmark and the agent of the sweep as the example has them, and a dataset of games."""
    laboratory = make_laboratory(at_once=8, isolation=Pool.Isolation.USER)
    entry = plan.FAST_LEARNING
    with laboratory.opened():
        owner = laboratory.owner
        create_benchmark(
            actor=owner, slug=entry.slug, contract={"metric": entry.metric, "direction": entry.direction, "terms": entry.terms}
        )
        make_agent(plan.POLICY_RUNNER, bundle_files(plan.POLICY_RUNNER.bundle), admin=owner)
        files = [receive_file(path.name, [path.read_bytes()]) for path in games]
        import_dataset_version(actor=owner, dataset=create_dataset(actor=owner, slug="games"), role="train", files=files)
    return laboratory


def run_to_the_end(laboratory: Laboratory, seconds: float = 240) -> None:
    deadline = time.monotonic() + seconds
    while True:
        advance_sweep(workspace_id=laboratory.workspace.pk.hex, subject_id=laboratory.workspace.pk.hex)
        dispatch(laboratory)
        watch(laboratory)
        with laboratory.opened():
            if not Sweep.objects.filter(status=Sweep.Status.RUNNING).exists():
                return
            left = list(Run.objects.values_list("pool__slug", "status", "reason"))
        assert time.monotonic() < deadline, f"after {seconds} s: {left}"
        time.sleep(0.1)


def found_on(pool: str) -> list[tuple[object, ...]]:
    """Of each member: what it was asked, its score, and the hash of its checkpoint."""
    found: list[tuple[object, ...]] = []
    for run in Run.objects.filter(sweep__name=pool).order_by("sweep_member"):
        assert run.status == "succeeded", f"{pool}: {run.reason}"
        attempt = Attempt.objects.select_related("pool__engine").get(run=run)
        assert (attempt.pool.slug, str(attempt.pool.engine.kind)) == (pool, pool)
        score = Evaluation.objects.get(run=run)
        checkpoint = Artifact.objects.select_related("blob").get(run=run, kind="checkpoint").blob
        assert checkpoint is not None
        found.append((run.parameters["learning_rate"], run.seed, score.value, score.standard_error, score.samples, checkpoint.sha256))
    return found


@pytest.mark.usefixtures("local_python")
def test_the_same_sweep_has_the_same_scores_on_all_four_pools(
    environment: Path, login_node: SSHHost, ray_head: RayHead, tmp_path: Path
) -> None:
    games = {"games": 8, "games_per_piece": 8, "simulations": 8, "replay": "never"}
    played = start(str(environment / "bin/python"), tmp_path / "games", plan.SELFPLAY_WORKER, None, games)
    assert played.code == 0, played.stderr
    laboratory = go_laboratory(sorted((played.folder / "outputs").iterdir()))
    far_pool(laboratory, "ssh", Engine.Kind.SSH, login_node, environment)
    far_pool(laboratory, "slurm", Engine.Kind.SLURM, login_node, environment)
    far_pool(laboratory, "ray", Engine.Kind.RAY, ray_head.host, environment, jobs_url=ray_head.url)
    with laboratory.opened():
        for pool in POOLS:
            request = LaunchRequest(
                benchmark=plan.FAST_LEARNING.slug, agent=plan.POLICY_RUNNER.slug, datasets=("games",), parameters=QUICK, pool=pool
            )
            create_sweep(actor=laboratory.owner, name=pool, space=SPACE, request=request)
    run_to_the_end(laboratory)
    with laboratory.opened():
        found = {pool: found_on(pool) for pool in POOLS}
    local = found["local"]
    assert [member[:2] for member in local] == [(0.001, 7), (0.004, 7)]
    assert local[0][-1] != local[1][-1], "the step makes a difference"
    assert found == dict.fromkeys(POOLS, local)
    settled(laboratory)
