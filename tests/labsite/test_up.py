"""`manage.py up` as an operator meets it: started, met twice, met in the way, ended."""

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from labsite.embedded import pool_python
from labsite.embedded.home import CHECKOUT, Home
from tests.labsite.embedded_home import residents

SECONDS = 90
Up = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        found: int = probe.getsockname()[1]
    return found


@pytest.fixture
def up(open_home: Home, tmp_path: Path, port: int) -> Iterator[Up]:
    """Starts `manage.py up --json` on a folder of its own; all starts of one test share it."""
    runs = tmp_path / "runs"
    installed = runs / f"python-{pool_python.stamp()}" / "bin" / "python"
    installed.parent.mkdir(parents=True)
    installed.touch()
    (runs / "python").symlink_to(installed.parents[1].name)
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_URL") and name != "LABSITE_STATIC"}
    environment |= {"LABSITE_HOME": str(open_home.path), "LABSITE_RUNS": str(runs), "LABSITE_PORT": str(port), "LABSITE_EXAMPLES": "0"}
    started: list[subprocess.Popen[str]] = []

    def start(**more: str) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [sys.executable, "manage.py", "up", "--json"],
            cwd=CHECKOUT,
            env=environment | more,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.terminate()
        process.communicate(timeout=SECONDS)


def ready(process: "subprocess.Popen[str]") -> dict[str, object]:
    """What `up` prints when everything serves."""
    assert process.stdout
    line = process.stdout.readline()
    assert line, process.communicate()[1]
    told: dict[str, object] = json.loads(line)
    return told


def refused(process: "subprocess.Popen[str]") -> str:
    """The one line of a start that was refused."""
    _, errors = process.communicate(timeout=SECONDS)
    assert process.returncode == 1
    lines = [line for line in errors.splitlines() if line.startswith("labsite: ")]
    assert len(lines) == 1, errors
    assert "Traceback" not in errors
    return lines[0]


def test_starts_answers_refuses_a_second_and_ends_all(up: Up, open_home: Home, port: int) -> None:
    first = up()
    told = ready(first)
    assert told["url"] == f"http://127.0.0.1:{port}/"
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=SECONDS) as answer:
        assert answer.status == 200
    children = Path(f"/proc/{first.pid}/task/{first.pid}/children").read_text().split()
    assert len(children) >= 2 + 1 + 4  # servers, web, workers

    second = refused(up())
    assert f"process {first.pid} at http://127.0.0.1:{port}/" in second

    first.send_signal(signal.SIGINT)
    assert first.wait(SECONDS) == 0
    assert not [pid for pid in children if Path(f"/proc/{pid}").exists()]
    assert residents(open_home.postgres) == residents(open_home.valkey) == []
    assert not (open_home.path / "running.json").exists()


def test_killed_and_started_again_at_once_on_the_same_port(up: Up) -> None:
    first = up()
    ready(first)
    first.kill()
    assert ready(up())


def test_a_taken_port_is_named_and_nothing_is_made(up: Up, open_home: Home, port: int) -> None:
    with socket.create_server(("127.0.0.1", port)):
        assert f"cannot listen on 127.0.0.1:{port}" in refused(up())
    assert not open_home.postgres.exists()
    assert list(open_home.valkey.iterdir()) == []


@pytest.mark.parametrize(
    ("variables", "why"),
    [
        ({"LABSITE_PORT": "many"}, "LABSITE_PORT"),
        ({"LABSITE_WORKERS": "0"}, "LABSITE_WORKERS"),
        ({"LABSITE_RUNS": "/dev/null/runs"}, "the run folder /dev/null/runs is not writable"),
        ({"LABSITE_HOME": "/dev/null/home"}, "the data folder /dev/null/home is not writable"),
        ({"LABSITE_REGIONS": "eu=srv/eu"}, "the folder of the region eu is not a whole path"),
        ({"DATABASE_URL": "postgresql://127.0.0.1:1/x"}, "LABSITE_OWNER_DATABASE_URL is not"),
    ],
)
def test_what_cannot_be_is_one_line_and_nothing_is_made(up: Up, open_home: Home, variables: dict[str, str], why: str) -> None:
    assert why in refused(up(**variables))
    assert not open_home.postgres.exists()
