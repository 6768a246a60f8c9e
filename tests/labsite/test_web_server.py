"""The web server as `up` starts it: slow clients are served, and keep nobody else waiting."""

import os
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from urllib.error import URLError

import pytest

from labsite.management.commands.up import WEB_WORKERS, web_server

TIMEOUT = 2


@pytest.fixture
def port() -> Iterator[int]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        number: int = probe.getsockname()[1]
    server = subprocess.Popen(
        web_server(f"127.0.0.1:{number}", timeout=TIMEOUT), env=os.environ | {"DJANGO_SETTINGS_MODULE": "labsite.settings"}
    )
    try:
        deadline = time.monotonic() + 30
        while True:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{number}/livez", timeout=5).close()
                break
            except URLError:
                assert time.monotonic() < deadline, "the web server does not answer"
                time.sleep(0.1)
        yield number
    finally:
        server.terminate()
        server.wait(20)


def slow_form(port: int) -> socket.socket:
    """A client that has said what it sends, and has sent none of it yet."""
    client = socket.create_connection(("127.0.0.1", port), timeout=20)
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
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/livez", timeout=20) as answer:
                assert answer.status == 200
            time.sleep(2 * TIMEOUT / 8)
        for client in slow:
            assert client.recv(4096).startswith(b"HTTP/1.1 "), "read to its end and answered (a form without its token, so not kindly)"
    finally:
        for client in slow:
            client.close()
