"""A data folder served by a process of its own, as `manage.py up` does it, for the drills in this folder."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from labsite.embedded.home import CHECKOUT, Home

SECONDS = 60  # the servers themselves get 30 to stop on a busy disk
SERVE = """
import os, signal, sys, threading
from labsite.embedded.home import Home, StartError
from labsite.embedded.servers import running_servers
asked = threading.Event()
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda *_: asked.set())
home = Home.of(os.environ)
try:
    with home.locked(), running_servers(home, {}, throw_away=True) as servers:
        home.note_running("http://127.0.0.1:1/")
        print(*(child.process.pid for child in servers.children), flush=True)
        asked.wait()
        home.note_stopped()
except StartError as refusal:
    print(refusal, flush=True)
    sys.exit(1)
"""
# As the tests' own account, which is root in CI; as an ordinary one; as root where user namespaces are forbidden.
WAYS: dict[str, Sequence[str]] = {"self": (), "plain": ("unshare", "--user", "--map-user=1000", "--map-group=1000"), "nobody": ()}


class Serving:
    """A running process that serves `home`; its first line names the servers' process ids, or says why it refused."""

    def __init__(self, home: Home, way: str = "self") -> None:
        self.home = home
        environment = os.environ | {"LABSITE_HOME": str(home.path), "PYTHONPATH": str(CHECKOUT)}
        if way == "nobody":
            environment["PATH"] = "/nowhere"  # without unshare(1) there is no user namespace
        self.process = subprocess.Popen(
            [*WAYS[way], sys.executable, "-c", SERVE], env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        assert self.process.stdout
        self.line = self.process.stdout.readline().strip()

    @property
    def server_pids(self) -> list[int]:
        assert self.line.replace(" ", "").isdigit(), self.line
        return [int(pid) for pid in self.line.split()]

    def end(self, number: signal.Signals = signal.SIGINT) -> int:
        """Send `number` to the serving process alone, where it serves; its exit code."""
        if self.line.replace(" ", "").isdigit() and self.process.poll() is None:
            self.process.send_signal(number)
        code = self.process.wait(SECONDS)
        if self.process.stdout:
            self.process.stdout.close()
        return code


def residents(folder: Path) -> list[int]:
    """Living processes that work in `folder`."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and (entry / "cwd").readlink() == folder:
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def note(home: Home) -> dict[str, object]:
    """What a second start reads about the first."""
    told: dict[str, object] = json.loads((home.path / "running.json").read_text())
    return told
