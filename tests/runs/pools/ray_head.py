"""A real Ray head on loopback, on a host that is reached over SSH: jobs run as the account there, which sees nothing of labsite.

`ray stop` would end every Ray of the machine; here all that a head has started stays below one process, and is ended by its id.
"""

import contextlib
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from runs.pools.folder import remove_tree
from runs.pools.isolation import Isolation, barrier, can_enter
from runs.pools.processes import descendants
from tests.runs.pools.laboratory import REPOSITORY
from tests.runs.pools.ssh_host import AS_ROOT, SSHHost

ENVIRONMENT = Path(os.path.realpath(REPOSITORY / ".venv-ray"))
ADDRESS = "127.0.0.2"  # 127.0.0.1 would silently be replaced by the address of the network card
START_SECONDS = 60
STARTS = 5
CPUS, GPUS = 4, 2
PORTS = (
    "dashboard-port", "port", "ray-client-server-port", "dashboard-agent-listen-port", "dashboard-agent-grpc-port", "metrics-export-port"
)  # fmt: skip


class RayHead:
    """The head, at `url`, and its `host`. It gives `CPUS` and `GPUS` to jobs, whatever the machine has."""

    def __init__(self) -> None:
        if not (ENVIRONMENT / "installed").exists():
            pytest.skip("no Ray here; `make .venv-ray/installed` makes its environment")
        self.shown = [ENVIRONMENT, Path(os.path.realpath(ENVIRONMENT / "bin" / "python")).parent.parent]
        self.hidden = sorted({found for path in self.shown if (found := barrier(path / "bin"))}) if AS_ROOT else []
        if self.hidden and not can_enter(Isolation.USER):
            pytest.skip(f"{self.hidden[0]} lets no other account through to Ray, and this machine lets root make no mounts")
        self.host = SSHHost()
        # Ray's sockets lie below it, and the kernel takes short paths for sockets only.
        self.folder = Path(tempfile.mkdtemp(prefix="labsite-ray-", dir="/var/lib" if AS_ROOT else None))
        shutil.chown(self.folder, self.host.user)
        self._ports = free_ports(len(PORTS))
        self.url = f"http://{ADDRESS}:{self._ports[0]}"
        self._started: list[subprocess.Popen[bytes]] = []
        try:
            self.start()
        except BaseException:
            self.close()
            raise

    def start(self) -> None:
        """A head without history, at the same address as the one before, what is left of which stays. On a machine that is very busy Ray gives
        up after half a minute; then it is tried again."""
        log = self.folder / "log"
        for _ in range(STARTS):
            process = self._launched(log)
            until = time.monotonic() + START_SECONDS
            while process.poll() is None and time.monotonic() < until:
                if self.is_up():
                    return
                time.sleep(0.1)
            end(process)
        raise AssertionError(f"Ray did not start: {log.read_text()}")

    def _launched(self, log: Path) -> "subprocess.Popen[bytes]":
        options = [f"--{name}={port}" for name, port in zip(PORTS, self._ports, strict=True)]
        command = [
            str(ENVIRONMENT / "bin/python"), "-m", "ray.scripts.scripts", "start", "--head", "--block", f"--node-ip-address={ADDRESS}",
            f"--dashboard-host={ADDRESS}", *options, f"--num-cpus={CPUS}", f"--num-gpus={GPUS}",
            "--object-store-memory=100000000", "--disable-usage-stats", "--include-log-monitor=false", f"--temp-dir={self.folder}/t",
        ]  # fmt: skip
        view = {"hide": [str(path) for path in self.hidden], "show": [str(path) for path in self.shown] if self.hidden else []}
        call = {"user": self.host.user, "home": str(self.folder), "argv": command, **view}
        with open(log, "ab") as file:
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.runs.pools.ray_account", json.dumps(call)],
                cwd=REPOSITORY, stdin=subprocess.DEVNULL, stdout=file, stderr=file, start_new_session=True,
            )  # fmt: skip
        self._started.append(process)
        return process

    def is_up(self) -> bool:
        """Whether it names a node that lives."""
        line = http.client.HTTPConnection(ADDRESS, self._ports[0], timeout=5)
        try:
            line.request("GET", "/api/v0/nodes")
            return b'"ALIVE"' in line.getresponse().read()
        except (OSError, http.client.HTTPException):
            return False
        finally:
            line.close()

    def lose(self, *orphans: int) -> None:
        """kill -9 of all that `ray start` has started. Its workers end with it, and each ends its job (Ray 2.60), but for the launchers
        `orphans`: there everything goes at once that could do that."""
        head = self._started[-1].pid
        below = descendants(head)
        parents = {int(below[pid][1]) for pid in orphans}
        watchers = tuple(f"kill -9 -{pid}".encode() for pid in orphans)
        for pid in below:
            with contextlib.suppress(OSError):
                told = Path(f"/proc/{pid}/cmdline").read_bytes()
                if pid in parents or os.getpgid(pid) == head or any(watcher in told for watcher in watchers):
                    os.kill(pid, signal.SIGKILL)

    def close(self) -> None:
        """End every head and all that they have left, jobs among it."""
        for process in self._started:
            end(process)
        self.host.close()
        remove_tree(self.folder)


def end(process: "subprocess.Popen[bytes]") -> None:
    """A head with all below it. Its first process ends by itself then."""
    while left := descendants(process.pid):
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)
    process.wait(10)


def free_ports(count: int) -> list[int]:
    """Ports of the loopback address that nobody has, all different."""
    with contextlib.ExitStack() as held:
        lines = [held.enter_context(socket.create_server((ADDRESS, 0))) for _ in range(count)]
        return [line.getsockname()[1] for line in lines]
