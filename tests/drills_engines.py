"""Real engines beside the local one, for drills in a whole installation: an SSH host, a Slurm of three nodes, a Ray head, each with a pool in the
workspace `lab`; and what each engine's own record says of our attempts."""

import http.client
import json
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from runs.models import Attempt
from runs.pools.ssh_thread import close_all
from tests.factories_runs import Laboratory
from tests.installation import wait_until
from tests.runs.pools.ray_head import ADDRESS, CPUS, RayHead
from tests.runs.pools.slurm_cluster import SlurmCluster
from tests.runs.pools.ssh_host import SSHHost
from workspaces.access import Actor
from workspaces.commands.engine import add_engine
from workspaces.commands.pool import bind_pool
from workspaces.commands.secret import create_secret
from workspaces.models import Engine, Pool, Secret

ENGINES = ("local", "ssh", "slurm", "ray")
# Of 500 kills 300 are on SSH and Slurm and 30 on Ray; spread, so that a drill that was cut off has met all of them.
MIX_OF_50 = {"local": 17, "ssh": 15, "slurm": 15, "ray": 3}
OVER = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "PREEMPTED", "OUT_OF_MEMORY", "SUCCEEDED", "STOPPED")
RECORD_SECONDS = 30.0  # an engine writes an end down a little later than the run folder has it


def engine_of(number: int, asked: tuple[str, ...], *, mix: bool) -> str:
    """On which engine a kill is: in turn over those asked for, or with `mix` in the shares of MIX_OF_50."""
    if not mix:
        return asked[number % len(asked)]
    met: Counter[str] = Counter()
    for place in range(number % 50 + 1):
        # Who is furthest behind its share.
        chosen = max(MIX_OF_50, key=lambda engine: MIX_OF_50[engine] * (place + 1) / 50 - met[engine])
        met[chosen] += 1
    return chosen


def again(end: Callable[[], object], start: Callable[[], object]) -> None:
    end()
    start()


class Engines:
    """Those asked for, started; a pool of each has the engine's name."""

    def __init__(self, laboratory: Laboratory, operator: Actor, asked: tuple[str, ...], python: Path | None = None) -> None:
        self._laboratory, self._operator, self._python = laboratory, operator, python
        self._stack = ExitStack()
        self.plugs: dict[str, Callable[[], None]] = {}  # kills a program of an engine, and starts it again
        self._cluster: SlurmCluster | None = None
        self._head: RayHead | None = None
        try:
            self._start(asked)
        except BaseException:
            self.close()
            raise

    def _start(self, asked: tuple[str, ...]) -> None:
        self._stack.callback(close_all)
        if "ssh" in asked:
            host = self._host(SSHHost())
            self._bind("ssh", Engine.Kind.SSH, host)
            self.plugs["sshd"] = lambda: again(host.stop, host.start)
        if "slurm" in asked:
            cluster = self._cluster = SlurmCluster()
            self._stack.callback(cluster.close)
            node = cluster.node(1)
            self.plugs["slurmctld"] = lambda: again(cluster.kill_controller, cluster.start_controller)
            self.plugs["slurmd"] = lambda: again(lambda: cluster.kill_node(node, jobs=False), lambda: cluster.start_node(node))
            self._bind("slurm", Engine.Kind.SLURM, self._host(SSHHost(more=f"SetEnv SLURM_CONF={cluster.conf}")))
        if "ray" in asked:
            head = self._head = RayHead()
            self._stack.callback(head.close)
            self._bind("ray", Engine.Kind.RAY, head.host, jobs_url=head.url)
            self.plugs["ray head"] = lambda: again(head.lose, head.start)

    def close(self) -> None:
        self._stack.close()

    def differs(self, pool: str, attempts: dict[str, Attempt]) -> list[str]:
        """Where the engine's own record of these attempts, which have ended, is another than ours: each is one job there, and over."""
        if pool == "slurm":
            look = self._slurm_jobs
        elif pool == "ray":
            look = self._ray_jobs
        else:
            return []  # its record is the run folder

        def found() -> list[str]:
            jobs = look()
            count = Counter(name for name, _ in jobs)
            wrong = [f"{pool} has {count[key]} jobs of {key}" for key in attempts if count[key] != 1]
            return wrong + [
                f"{pool} has {name} as {state}, and it has ended here" for name, state in jobs if name in attempts and state not in OVER
            ]

        last: list[str] = []

        def equal() -> bool:
            last[:] = found()
            return not last

        try:
            wait_until(equal, "the engine's own record", seconds=RECORD_SECONDS, every=0.5)
        except AssertionError:
            return last
        return []

    def _slurm_jobs(self) -> list[tuple[str, str]]:
        assert self._cluster is not None
        lines = self._cluster.run("squeue", "-h", "-a", "-t", "all", "-o", "%j|%T", check=True).splitlines()
        return [(name, state) for name, _, state in (line.strip().partition("|") for line in lines)]

    def _ray_jobs(self) -> list[tuple[str, str]]:
        assert self._head is not None
        line = http.client.HTTPConnection(ADDRESS, int(self._head.url.rpartition(":")[2]), timeout=20)
        try:
            line.request("GET", "/api/jobs/")
            jobs: list[dict[str, Any]] = json.loads(line.getresponse().read())
        finally:
            line.close()
        return [(str(job["submission_id"]), str(job["status"])) for job in jobs]

    def _host(self, host: SSHHost) -> SSHHost:
        self._stack.callback(host.close)
        return host

    def _bind(self, slug: str, kind: str, host: SSHHost, **engine: Any) -> None:
        add_engine(
            actor=self._operator, slug=slug, kind=kind, slots=CPUS, host="127.0.0.1", port=host.port,
            host_key=f"[127.0.0.1]:{host.port} {host.pinned}", **engine,
        )  # fmt: skip
        key = f"{slug.upper()}_KEY"
        with self._laboratory.opened():
            create_secret(actor=self._laboratory.owner, name=key, kind=Secret.Kind.SSH_KEY, value=host.private_key)
            bind_pool(
                actor=self._laboratory.owner, engine=slug, slug=slug, slots=CPUS, isolation=Pool.Isolation.NONE, login=host.user,
                folder=str(host.home / f"labsite-{slug}"), secret=key,
                python="" if self._python is None else str(self._python),
            )  # fmt: skip
