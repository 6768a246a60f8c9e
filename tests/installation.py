"""A whole installation under `manage.py up`, for drills and measurements: folders and port of its own, started, killed and started again.

Make it before anything of Django is imported: it sets the environment that labsite's settings read.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from labsite.embedded import pool_python
from labsite.embedded.home import CHECKOUT

START_SECONDS = 90


class Installation:
    """Folders in a temporary place, removed at the end together with whatever still runs in them."""

    def __init__(self) -> None:
        self.place = Path(tempfile.mkdtemp(prefix="labsite-whole-"))
        self.place.chmod(0o711)
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = probe.getsockname()[1]
        for name in [name for name in os.environ if name.endswith("_URL") or name == "LABSITE_STATIC"]:
            del os.environ[name]
        os.environ |= {
            "LABSITE_HOME": str(self.place / "home"),
            "LABSITE_RUNS": str(self.place / "runs"),
            "LABSITE_PORT": str(port),
            "LABSITE_EXAMPLES": "0",
            "DJANGO_SETTINGS_MODULE": "labsite.settings",
        }
        # Runs here need nothing but the standard library: an environment without packages, so that none is fetched.
        python = self.place / "runs" / f"python-{pool_python.stamp()}"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(python)], check=True)
        (self.place / "runs" / "python").symlink_to(python.name)
        self.url = f"http://127.0.0.1:{port}"
        self.token = ""
        self.process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # who is told to end takes down what it has started
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is not None:
            for log in sorted((self.place / "home" / "logs").glob("w*.log")):
                print(f"--- {log.name}\n{log.read_text()[-3000:]}", file=sys.stderr)
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            self.process.wait(90)
        shutil.rmtree(self.place, ignore_errors=True)

    def start(self) -> None:
        """Start and wait until pages answer and the workers run."""
        command = [sys.executable, "manage.py", "up", "--json"]
        self.process = subprocess.Popen(
            command, cwd=CHECKOUT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True
        )
        assert self.process.stdout is not None
        told = self.process.stdout.readline()
        assert told, "labsite did not start"
        json.loads(told)

    def end(self, number: signal.Signals) -> int:
        """Send a signal to `up` and wait for its end; its exit code."""
        assert self.process is not None
        self.process.send_signal(number)
        return self.process.wait(90)

    def programs(self, words: str) -> list[int]:
        """Process ids of labsite's programs with these words in their command line, such as `work watch`."""
        assert self.process is not None
        found = []
        for pid in children_of(self.process.pid):
            with suppress(OSError):
                if words in Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"):
                    found.append(pid)
        return found

    def ask(self, path: str, body: Any = None, *, seconds: float = 30, **headers: str) -> Any:
        """One request to the API of the workspace `lab`; a POST where there is a body. Raises HTTPError."""
        request = urllib.request.Request(  # noqa: S310  # the address is ours, on loopback
            f"{self.url}/api/v1/workspaces/lab/{path}",
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self.token}", "Content-Type": "application/json", **headers},
        )
        with urllib.request.urlopen(request, timeout=seconds) as answer:  # noqa: S310  # as above
            return json.load(answer)

    def manage(self, *words: str) -> str:
        """Run a command of manage.py, which must end well; what it printed."""
        done = subprocess.run([sys.executable, "manage.py", *words], cwd=CHECKOUT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout


def children_of(parent: int) -> Iterator[int]:
    for name in os.listdir("/proc"):
        if name.isdigit():
            with suppress(OSError):
                if int(Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()[1]) == parent:
                    yield int(name)


def wait_until(holds: Callable[[], object], what: str, seconds: float = 60, every: float = 0.05) -> Any:
    """Ask, every so many seconds, until the answer is true; the answer. An API that does not answer just now counts as not yet."""
    deadline = time.monotonic() + seconds
    while True:
        with suppress(urllib.error.URLError, ConnectionError, TimeoutError):
            if found := holds():
                return found
        assert time.monotonic() < deadline, f"not within {seconds:.0f} s: {what}"
        time.sleep(every)
