"""A host that takes connections and never speaks: one is kept waiting, those behind are told at once, and it is asked more rarely."""

import socket
import threading
import time
from collections.abc import Iterator

import asyncssh
import pytest

from runs.pools import ssh_access, ssh_thread
from runs.pools.base import PoolError
from runs.pools.ssh import SSHPool


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> Iterator[SSHPool]:
    monkeypatch.setattr(ssh_access, "CONNECT_SECONDS", 3.0)
    monkeypatch.setattr(ssh_thread, "PATIENCE_SECONDS", 0.5)
    key = asyncssh.generate_private_key("ssh-ed25519")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        yield SSHPool("127.0.0.1", port, "nobody", "runs", key.export_public_key().decode().strip(), key.export_private_key().decode())
        ssh_thread.close_all()


def asked(pool: SSHPool) -> tuple[float, str]:
    """How long one look took, and what stood in the way."""
    began = time.monotonic()
    with pytest.raises(PoolError) as caught:
        pool.observe("lab", "lab-1")
    return time.monotonic() - began, caught.value.reason


def test_a_host_that_kept_two_waiting_is_not_asked_again_for_a_while(silent: SSHPool) -> None:
    for _ in range(2):  # the first may have been the fault of an old connection
        took, reason = asked(silent)
        assert took > 2
        assert "did not answer" in reason
    began = time.monotonic()
    assert [asked(silent)[1] for _ in range(20)] == [reason] * 20
    assert time.monotonic() - began < 2, "twenty attempts there cost no more than one"


def test_a_host_that_does_not_answer_takes_two_threads_and_no_more(silent: SSHPool) -> None:
    found: list[tuple[float, str]] = []
    waiting = [threading.Thread(target=lambda: found.append(asked(silent))) for _ in range(2)]
    for thread in waiting:
        thread.start()
    time.sleep(1)
    took, reason = asked(silent)
    assert took < 1
    assert "has not answered others yet" in reason
    for thread in waiting:
        thread.join()
    assert min(found)[0] > 1.5
