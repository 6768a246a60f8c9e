"""Getting to a host over SSH: keys of both sides, shells, interpreters, and what is refused before anything is sent."""

from collections.abc import Iterator
from pathlib import Path

import asyncssh
import pytest

from runs.pools.base import PoolError, Status
from runs.pools.ssh import SSHPool
from runs.pools.ssh_thread import close_all, shown_host_key
from tests.runs.pools import ssh_laboratory
from tests.runs.pools.ssh_host import SSHHost
from tests.runs.pools.ssh_laboratory import pool_on

WAITS = "import os, sys, time; open('../metrics.jsonl', 'a').write('x'); print('up', flush=True); time.sleep(60)"


@pytest.fixture(scope="module")
def host() -> Iterator[SSHHost]:
    found = SSHHost()
    try:
        yield found
    finally:
        close_all()
        found.close()


def test_a_changed_host_key_stops_everything_before_anything_is_sent(tmp_path: Path) -> None:
    host = SSHHost()
    try:
        for lab in ssh_laboratory.laboratory(host, tmp_path):
            order = lab.start(lab.order(WAITS))
            old, old_key = lab.pool, host.host_key
            host.stop()
            host.change_host_key()
            host.start()
            with pytest.raises(PoolError, match="shows another host key") as caught:
                old.observe(order.workspace, order.key)
            assert host.host_key.get_fingerprint() in caught.value.reason
            with pytest.raises(PoolError, match="shows another host key"):
                old.submit(lab.order("print('ran')", secrets={"TOKEN": "s3cret"}))
            assert len(list(lab.folder(order).parent.iterdir())) == 1
            # A person compares the fingerprint and pins the new one.
            assert shown_host_key("127.0.0.1", host.port) == (host.pinned, host.host_key.get_fingerprint())
            lab.pool = pool_on(host)
            assert lab.look(order).status == Status.RUNNING
            lab.pool.cancel(order.workspace, order.key, grace_seconds=0)
            lab.ended(order)
            host.stop()
            host.change_host_key("ecdsa-sha2-nistp256")
            host.start()
            with pytest.raises(PoolError, match="shows another host key"):
                pool_on(host, host_key=old_key.export_public_key().decode()).probe()
            lab.pool = pool_on(host)
    finally:
        close_all()
        host.close()


def test_a_host_key_that_nobody_has_pinned_is_named_and_not_trusted(host: SSHHost) -> None:
    with pytest.raises(PoolError, match="no host key is pinned for 127") as caught:
        pool_on(host, host_key="").probe()
    assert host.host_key.get_fingerprint() in caught.value.reason
    # A line as known_hosts has it is understood as well.
    assert pool_on(host, host_key=f"[127.0.0.1]:{host.port} {host.pinned} a comment\n").probe().user == host.user
    with pytest.raises(PoolError, match="host key cannot be read"):
        pool_on(host, host_key="ssh-ed25519 no").probe()


def test_a_key_that_is_refused_or_cannot_be_read(host: SSHHost) -> None:
    other = asyncssh.generate_private_key("ssh-ed25519")
    with pytest.raises(PoolError, match="refused the key") as caught:
        pool_on(host, private_key=other.export_private_key().decode()).probe()
    assert other.get_fingerprint() in caught.value.reason
    for text in ("", "no key", other.export_private_key("pkcs8-pem", passphrase="x").decode()):
        with pytest.raises(PoolError, match="private key cannot be read") as caught:
            pool_on(host, private_key=text).probe()
        assert text == "" or text not in caught.value.reason


def test_a_shell_that_greets_is_heard_out(tmp_path: Path) -> None:
    noisy = "ForceCommand echo Welcome; printf 'no newline at the end '; sh -c \"$SSH_ORIGINAL_COMMAND\""
    host = SSHHost(more=noisy)
    try:
        for lab in ssh_laboratory.laboratory(host, tmp_path):
            order, _ = lab.run("print('hello')")
            assert lab.log(order) == "hello\n"
    finally:
        close_all()
        host.close()


def test_a_host_without_python_or_with_a_closed_account_says_so(host: SSHHost) -> None:
    with pytest.raises(PoolError, match=r"no-such-python could not be run .* not found.*status 127"):
        pool_on(host, interpreter="/usr/bin/no-such-python").probe()
    closed = SSHHost(more="ForceCommand echo This account is closed.; exit 1")
    try:
        with pytest.raises(PoolError, match="could not be run"):
            pool_on(closed).probe()
    finally:
        close_all()
        closed.close()


@pytest.mark.parametrize("path", ["", "a b", "$(id)", "../up", "a/../../b", "-x", "a;b", "~root/x", "a\nb"])
def test_folders_that_a_shell_could_misread_are_refused(path: str) -> None:
    for root, interpreter in ((path, "python3"), ("runs", path)):
        with pytest.raises(PoolError, match=r"is a path of letters"):
            SSHPool("127.0.0.1", 22, "nobody", root, "", "", interpreter=interpreter)
