"""Programs that fall are started again; programs that will not end are killed; nothing else is touched."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
import redis

from labsite.embedded import around, servers
from labsite.embedded.children import start, wait_for_answer
from labsite.embedded.home import Home, StartError
from labsite.embedded.supervisor import Stop, Supervisor
from labsite.embedded.web import Address

STUBBORN = "trap '' TERM; sleep 60 & echo deaf $!; wait"


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def supervisor(tmp_path: Path, told: list[str]) -> Iterator[Supervisor]:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    home = Home(tmp_path / "home")
    with home.locked():
        made = Supervisor(home, os.environ, told.append, Stop())
        yield made
        made.end("")
    for number, handler in before.items():
        signal.signal(number, handler)


def ask_for_the_end_when(condition: "threading.Event") -> None:
    condition.wait(20)
    os.kill(os.getpid(), signal.SIGTERM)


def test_a_fallen_program_is_started_again_and_a_line_says_so(supervisor: Supervisor, tmp_path: Path) -> None:
    twice = threading.Event()

    def report(line: str) -> None:
        lines.append(line)
        if len(lines) == 2:
            twice.set()

    lines: list[str] = []
    supervisor.report = report
    supervisor.keep("worker-x", ["sh", "-c", f"echo x >> {tmp_path}/starts; exit 3"])
    threading.Thread(target=ask_for_the_end_when, args=[twice]).start()
    supervisor.watch(servers.Servers(), [])
    assert len((tmp_path / "starts").read_text().split()) >= 2
    assert lines[0].startswith("worker-x ended with code 3; starting it again in 0.5 s")
    assert "in 1.0 s" in lines[1]


def test_a_server_that_does_not_stay_up_ends_it_all(supervisor: Supervisor) -> None:
    server = start("postgres", ["sh", "-c", "echo out of disk; exit 2"], supervisor.home.logs, os.environ)
    fallen = servers.Servers()
    fallen.start(lambda: server)
    with pytest.raises(StartError, match="postgres ended with code 2: out of disk"):
        supervisor.watch(fallen, [])


def test_killed_servers_are_started_again_where_they_were(
    supervisor: Supervisor, told: list[str], open_home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(servers, "STEADY_SECONDS", 0.0)
    with open_home.locked(), servers.running_servers(open_home, {}, throw_away=True) as serving:
        before = [child.process.pid for child in serving.children]

        def kill_both_and_ask_for_the_end() -> None:
            for count, child in enumerate(list(serving.children), start=1):
                child.process.kill()
                deadline = time.monotonic() + 60
                while time.monotonic() < deadline and (len(told) < count or serving.fallen()):
                    time.sleep(0.05)
            os.kill(os.getpid(), signal.SIGTERM)

        killer = threading.Thread(target=kill_both_and_ask_for_the_end)
        killer.start()
        supervisor.watch(serving, [])
        killer.join()
        assert [line.partition(" (")[0] for line in told] == [
            "postgres ended with code -9; starting it again", "valkey ended with code -9; starting it again",
        ]  # fmt: skip
        assert not set(before) & {child.process.pid for child in serving.children}
        with psycopg.connect(serving.addresses["DATABASE_URL"]) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
        assert redis.Redis.from_url(serving.addresses["REDIS_URL"]).ping()


def test_stubborn_programs_are_killed_with_their_group(supervisor: Supervisor, told: list[str]) -> None:
    child = supervisor.keep("worker-deaf", ["sh", "-c", STUBBORN])
    wait_for_answer(child, lambda: "deaf" in child.said(), 10)
    supervisor.end("worker", seconds=0.2)
    assert child.code == -signal.SIGKILL
    assert told == ["worker-deaf did not end within 0 s; killed"]
    grandchild = Path("/proc", child.said().split()[1], "stat")
    until = time.monotonic() + 10  # a signal is delivered when the process is next looked at
    while grandchild.exists() and grandchild.read_text().rpartition(")")[2].split()[0] not in "ZX":
        assert time.monotonic() < until, "it lives on"
        time.sleep(0.01)


def test_a_failed_step_says_its_last_words(supervisor: Supervisor) -> None:
    child = supervisor.launch("migrate", ["sh", "-c", "echo no such column >&2; exit 1"])
    with pytest.raises(StartError, match="migrate failed with code 1: no such column"):
        supervisor.finish(child, "migrate")


def test_asking_for_the_end_breaks_off_a_step(supervisor: Supervisor) -> None:
    child = supervisor.launch("migrate", ["sleep", "60"])
    os.kill(os.getpid(), signal.SIGINT)
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        supervisor.finish(child, "migrate")
    assert child.code is not None
    assert time.monotonic() - began < 5


def test_a_taken_port_is_refused_and_a_free_one_is_not() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = Address.of({"LABSITE_PORT": str(taken.getsockname()[1])})
        with pytest.raises(StartError, match=f"cannot listen on {address.bind} .*set LABSITE_PORT"):
            address.refuse_taken(left_running=False)
    address.refuse_taken(left_running=False)


@pytest.mark.parametrize("text", ["http", "0", "65536", "-1", "8000 ", "٨٠٠٠"])
def test_a_port_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(StartError, match="LABSITE_PORT"):
        Address.of({"LABSITE_PORT": text})


def test_addresses_that_mean_everywhere_are_shown_as_one_that_answers() -> None:
    assert Address("0.0.0.0", 80).url == "http://127.0.0.1:80/"  # noqa: S104 - only written, not bound
    assert Address("::", 80).url == "http://[::1]:80/"
    assert Address("::1", 80).bind == "[::1]:80"


def test_around_passes_the_exit_code_and_leaves_nothing(tmp_path: Path) -> None:
    script = "import os, sys; print(os.environ['LABSITE_HOME']); sys.exit(7 if 'labsite_app' in os.environ['DATABASE_URL'] else 1)"
    clean = {name: value for name, value in os.environ.items() if not name.endswith("_URL")}
    ran = subprocess.run(
        [sys.executable, "-m", around.__name__, "--", sys.executable, "-c", script],
        env=clean | {"TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 7, ran.stderr
    assert ran.stdout.startswith(str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_around_without_a_command_says_how() -> None:
    assert around.main(["--"]) == 2
