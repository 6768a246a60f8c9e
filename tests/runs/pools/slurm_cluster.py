"""A real Slurm of three nodes on this machine: slurmctld, three slurmd and munged in a throw-away folder, on free ports, ended by pid."""

import contextlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from runs.pools.folder import remove_tree
from runs.pools.processes import descendants, stat_fields

AS_ROOT = os.getuid() == 0
NEEDED = ("slurmctld", "slurmd", "munged", "sbatch", "squeue", "scancel", "sinfo", "scontrol")
PATHS = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
NODES = 3
CPUS = 16
START_SECONDS = 30.0

# A node is given up 10 s after its last word; a job that is stopped has 3 s.
CONFIG = """
ClusterName=labsite
SlurmctldHost=localhost(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/run/munge.sock,cred_expire=5
CredType=cred/munge
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmctldPidFile={folder}/run/slurmctld.pid
SlurmdPidFile={folder}/run/slurmd-%n.pid
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldLogFile={folder}/log/slurmctld.log
SlurmdLogFile={folder}/log/slurmd-%n.log
SwitchType=switch/none
MpiDefault=none
ProctrackType={proctrack}
TaskPlugin={task}
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=2
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=2,bf_interval=2,batch_sched_delay=0,sched_min_interval=10000
EnforcePartLimits=ALL
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
ReturnToService=2
SlurmctldTimeout=30
SlurmdTimeout=10
MessageTimeout=10
KillWait=3
MinJobAge=300
JobRequeue=1
MaxJobCount=2000
MailProg=/bin/true
SlurmdParameters=config_overrides
DefMemPerCPU=64
PreemptType=preempt/partition_prio
PreemptMode=CANCEL
NodeName={nodes} NodeHostname=localhost NodeAddr=127.0.0.1 Port=[{ports[2]}-{last}] CPUs={cpus} RealMemory=16000 State=UNKNOWN
PartitionName=main Nodes={nodes} Default=YES MaxTime=24:00:00 DefaultTime=5 PriorityTier=1 State=UP
PartitionName=urgent Nodes={nodes} MaxTime=1:00:00 PriorityTier=10 PreemptMode=OFF State=UP
"""
CONTROL_GROUPS = Path("/sys/fs/cgroup")
CGROUP = """
CgroupPlugin=cgroup/v1
CgroupMountpoint=/sys/fs/cgroup
CgroupAutomount=no
ConstrainCores=no
ConstrainRAMSpace=no
ConstrainSwapSpace=no
"""


def has_cgroups() -> bool:
    """Version 1, with a freezer that can be written: what proctrack/cgroup is tried with."""
    return all(os.access(CONTROL_GROUPS / name, os.W_OK) and (CONTROL_GROUPS / name / "tasks").exists() for name in ("freezer", "memory"))


class SlurmCluster:
    """The daemons and their folder; `conf` is what SLURM_CONF has to be."""

    def __init__(self) -> None:
        missing = [name for name in NEEDED if shutil.which(name, path=PATHS) is None]
        if missing:
            pytest.skip(f"no Slurm here ({', '.join(missing)}); on Debian: apt-get install slurm-wlm munge (or make system)")
        if not AS_ROOT:
            pytest.skip("a Slurm of several nodes on one machine needs root")
        self.folder = Path(tempfile.mkdtemp(prefix="labsite-slurm-", dir="/var/lib"))
        self.folder.chmod(0o755)  # munged demands it, and other accounts submit too
        for name in ("state", "spool", "log", "run"):
            (self.folder / name).mkdir(mode=0o755)
        self.conf = self.folder / "slurm.conf"
        # Slurm names the control group of a job by node and job id alone: nodes of one name in two clusters here would end each other's jobs.
        self._name = f"lab{secrets.token_hex(4)}n"
        first = free_ports(2 + NODES)
        cgroups = has_cgroups()
        self.conf.write_text(
            CONFIG.format(
                folder=self.folder,
                ports=[first, first + 1, first + 2],
                last=first + 1 + NODES,
                nodes=f"{self._name}[1-{NODES}]",
                cpus=CPUS,
                proctrack="proctrack/cgroup" if cgroups else "proctrack/linuxproc",
                task="task/cgroup" if cgroups else "task/none",
            )
        )
        self.conf.chmod(0o644)
        if cgroups:
            (self.folder / "cgroup.conf").write_text(CGROUP)
        self.environment = {"PATH": PATHS, "SLURM_CONF": str(self.conf), "LC_ALL": "C"}
        self._munge()
        self.start_controller()
        for number in range(1, NODES + 1):
            self.start_node(self.node(number))
        self.ready()

    def _munge(self) -> None:
        key, run = self.folder / "munge.key", self.folder / "run"
        key.touch(mode=0o600)
        key.write_bytes(secrets.token_bytes(1024))
        files = {"key-file": key, "socket": run / "munge.sock", "pid-file": run / "munged.pid", "seed-file": run / "munge.seed"}
        options = [f"--{name}={path}" for name, path in files.items()]
        self._start("munged", *options, f"--log-file={self.folder}/log/munged.log")

    def node(self, number: int) -> str:
        """The name of a node, from 1."""
        return f"{self._name}{number}"

    def start_controller(self) -> None:
        self._start("slurmctld")

    def start_node(self, node: str) -> None:
        (self.folder / "spool" / node).mkdir(mode=0o755, exist_ok=True)
        self._start("slurmd", "-N", node)

    def kill_controller(self, number: int = signal.SIGKILL) -> None:
        """End it, at once or politely, and wait for that."""
        self._end("slurmctld.pid", number)

    def saved(self, name: str) -> None:
        """Wait until the controller has written the job of that name down; for seconds it keeps it in memory only."""
        state = self.folder / "state" / "job_state"
        self.wait(lambda: state.exists() and name.encode() in state.read_bytes(), "the state of the jobs")

    def kill_node(self, node: str, *, jobs: bool) -> None:
        """A slurmd, and with `jobs` whatever runs on the node, as a machine that goes down."""
        if jobs:
            for pid in self._steps(node):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        self._end(f"slurmd-{node}.pid", signal.SIGKILL)

    def ready(self, nodes: int = NODES) -> None:
        """Wait until so many nodes are idle."""
        self.wait(lambda: self.run("sinfo", "-h", "-p", "main", "-t", "idle", "-o", "%D").strip() == str(nodes), "idle nodes")

    def run(self, *command: str, check: bool = False) -> str:
        """One of Slurm's programs, as root; what it printed."""
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=90, check=check)
        return done.stdout

    def job(self, name: str, what: str = "%T") -> str:
        """What squeue says of the job of that name (the first), in the format `what`; empty where there is none."""
        lines = self.run("squeue", "-h", "-a", "-t", "all", f"--name={name}", "-o", what).splitlines()
        return lines[0].strip() if lines else ""

    def wait(self, is_so: Callable[[], bool], what: str) -> None:
        until = time.monotonic() + START_SECONDS
        while not is_so():
            assert time.monotonic() < until, f"waited {START_SECONDS} s for {what}: {self.log()}"
            time.sleep(0.05)

    def log(self) -> str:
        """The last words of the controller."""
        with contextlib.suppress(OSError):
            return "\n".join((self.folder / "log" / "slurmctld.log").read_text().splitlines()[-15:])
        return ""

    def close(self) -> None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.run("scancel", "--user=root")
        for path in sorted((self.folder / "run").glob("*.pid"), key=lambda one: one.name == "munged.pid"):
            self._end(path.name, signal.SIGKILL)
        for pid in self._steps():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for group in CONTROL_GROUPS.glob(f"*/slurm_{self._name}*"):
            for place, *_ in os.walk(group, topdown=False):
                with contextlib.suppress(OSError):  # busy for as long as the last of its processes takes to go
                    os.rmdir(place)
        remove_tree(self.folder)

    def _start(self, program: str, *options: str) -> None:
        done = subprocess.run(
            [str(shutil.which(program, path=PATHS)), *options],
            env=self.environment, cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=90, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{program}: {done.stdout.decode()} {self.log()}"

    def _end(self, pid_file: str, number: int) -> None:
        path = self.folder / "run" / pid_file
        try:
            pid = int(path.read_text())
        except (OSError, ValueError):
            return
        if pid > 1:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
            until = time.monotonic() + 10
            while stat_fields(pid) is not None and time.monotonic() < until:
                time.sleep(0.02)
            if stat_fields(pid) is not None:
                os.kill(pid, signal.SIGKILL)
        path.unlink(missing_ok=True)

    def _steps(self, node: str = "") -> list[int]:
        """The processes that watch over jobs (slurmstepd) on one node or on all, with all that runs below them."""
        found: list[int] = []
        log = f"{self.folder}/log/slurmd-{node}"
        for path in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if b"slurmstepd" in (path / "cmdline").read_bytes() and any(
                    os.readlink(one).startswith(log) for one in (path / "fd").iterdir()
                ):
                    found += [int(path.name), *descendants(int(path.name))]
        return found


def free_ports(count: int) -> int:
    """The first of so many ports in a row that nobody listens on."""
    for _ in range(100):
        with socket.socket() as probe:
            probe.bind(("", 0))
            first: int = probe.getsockname()[1]
        with contextlib.ExitStack() as held:
            try:
                for port in range(first, first + count):
                    one = held.enter_context(socket.socket())
                    one.bind(("", port))
            except (OSError, OverflowError):
                continue
            return first
    raise AssertionError("no free ports in a row")
