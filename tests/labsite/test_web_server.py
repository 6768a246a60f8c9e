"""The web server as `up` starts it: slow clients are served, and keep nobody else waiting."""

import os
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from labsite.management.commands.up import WEB_THREADS, WEB_WORKERS, web_server
from labsite.web_worker import Connection, Worker

TIMEOUT = 2
SILENCE = 2.0
CLIENTS = 10  # of each kind


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "web.log"


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """With static files, without which no page can be shown, not even a refusal."""
    static = tmp_path_factory.mktemp("static")
    environment = os.environ | {"DJANGO_SETTINGS_MODULE": "labsite.settings", "LABSITE_STATIC": str(static)}
    subprocess.run([sys.executable, "manage.py", "collectstatic", "--no-input", "--verbosity=0"], env=environment, check=True)
    return environment


@pytest.fixture
def port(log: Path, environment: dict[str, str]) -> Iterator[int]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        number: int = probe.getsockname()[1]
    with log.open("wb") as written:
        server = subprocess.Popen(
            web_server(f"127.0.0.1:{number}", timeout=TIMEOUT, silence=SILENCE),
            env=environment, stdout=written, stderr=subprocess.STDOUT,
        )  # fmt: skip
    try:
        deadline = time.monotonic() + 60
        while True:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{number}/livez", timeout=5).close()
                break
            except OSError:  # refused; or taken up, and not answered before the first worker is there
                assert time.monotonic() < deadline, "the web server does not answer"
                time.sleep(0.1)
        yield number
    finally:
        server.terminate()
        server.wait(60)


def slow_form(port: int) -> socket.socket:
    """A client that has said what it sends, and has sent none of it yet."""
    client = socket.create_connection(("127.0.0.1", port), timeout=60)
    token = "a" * 32
    head = f"POST /accounts/login/ HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nCookie: csrftoken={token}\r\nContent-Length: 40\r\n"
    client.sendall(f"{head}Content-Type: application/x-www-form-urlencoded\r\n\r\n".encode())
    return client


def test_a_client_slower_than_the_timeout_is_answered_and_others_are_meanwhile(port: int) -> None:
    slow = [slow_form(port) for _ in range(WEB_WORKERS + 1)]
    try:
        for piece in range(8):
            for client in slow:
                client.sendall(b"name=" if piece == 0 else b"abcde")
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/livez", timeout=60) as answer:
                assert answer.status == 200
            time.sleep(2 * TIMEOUT / 8)
        for client in slow:
            assert client.recv(4096).startswith(b"HTTP/1.1 "), "read to its end and answered (a form without its token, so not kindly)"
    finally:
        for client in slow:
            client.close()


def test_silent_clients_lose_their_threads(port: int, log: Path) -> None:
    silent = [slow_form(port) for _ in range(CLIENTS)]
    for number, client in enumerate(silent):
        client.sendall(b"login=a" if number % 2 else b"")
    for _ in range(CLIENTS):
        silent.append(socket.create_connection(("127.0.0.1", port), timeout=60))
        silent[-1].sendall(f"GET /livez HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nX-A: ".encode())
    try:
        # Those before it have each a turn of silence; at worst one worker has got all of them.
        turns = -(-len(silent) // WEB_THREADS)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/livez", timeout=turns * SILENCE + 10) as answer:
            assert answer.status == 200
        for client in silent:
            client.settimeout(turns * SILENCE + 10)
            assert client.recv(4096) == b"", "no answer, no error: the connection is at its end"
    finally:
        for client in silent:
            client.close()
    told = log.read_text()
    assert "Traceback" not in told and "Socket error" not in told and "Error handling" not in told
    assert '"code": 500' not in told


def test_an_answer_goes_on_as_long_as_its_reader_takes_some_of_it() -> None:
    ours, reader = socket.socketpair()
    content, got = os.urandom(3_000_000), bytearray()

    def read_slowly() -> None:
        while piece := reader.recv(200_000):
            got.extend(piece)
            time.sleep(0.05)  # the reader's slowness is what is tested: all of it takes longer than it may pause

    thread = threading.Thread(target=read_slowly)
    began = time.monotonic()
    with reader, Connection(ours, silence=0.1, reader=0.5) as connection:
        connection.setblocking(True)
        thread.start()
        connection.sendall(content)
        connection.shutdown(socket.SHUT_WR)
        thread.join(30)
    assert bytes(got) == content and time.monotonic() - began > 0.5


@pytest.mark.parametrize("as_file", [False, True])
def test_a_reader_that_takes_nothing_counts_as_gone(as_file: bool, tmp_path: Path) -> None:
    ours, reader = socket.socketpair()
    path = tmp_path / "large"
    path.write_bytes(bytes(20_000_000))
    with reader, Connection(ours, silence=0.1, reader=0.3) as connection, path.open("rb") as file:
        connection.setblocking(True)
        with pytest.raises(ConnectionResetError):
            connection.sendfile(file) if as_file else connection.sendall(file.read())
        assert connection.recv(1) == b"", "nothing waits for this client any more"
        assert connection.gettimeout() == 0.1


def test_a_process_takes_on_as_many_clients_as_it_serves_and_the_next_one() -> None:
    """Clients who ask nothing at the moment do not count, and what an operator allows at most holds."""
    worker = Worker.__new__(Worker)
    worker.cfg, worker.keepalived_conns, worker.pending_conns = SimpleNamespace(threads=4), [], []
    worker.worker_connections = 1000
    assert worker.worker_connections == 5
    worker.keepalived_conns, worker.pending_conns = [object()] * 7, [object()] * 2
    assert worker.worker_connections == 14
    worker.worker_connections = 3
    assert worker.worker_connections == 3
