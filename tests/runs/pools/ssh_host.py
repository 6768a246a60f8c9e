"""A real sshd on loopback, with a host key, a client key and, where the tests are root, an account of its own for the far side."""

import contextlib
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import asyncssh
import pytest

from runs.pools.folder import remove_tree
from runs.pools.processes import descendants

AS_ROOT = os.getuid() == 0
SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")

CONFIG = """
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host_key
PidFile {folder}/sshd.pid
AuthorizedKeysFile {folder}/authorized_keys
AllowUsers {user}
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
PubkeyAuthentication yes
UsePAM no
StrictModes no
UseDNS no
PrintMotd no
MaxStartups 100:30:200
MaxSessions 10
LogLevel VERBOSE
"""


class SSHHost:
    """The daemon, its keys and its account. `home` is the account's, 0700; only the test (root) and the account see into it."""

    def __init__(self, *, as_root: bool = False, more: str = "") -> None:
        """`as_root`: the account is root, for attempts with users of their own. `more`: further lines of sshd_config."""
        if SSHD is None:
            pytest.skip("no sshd here; on Debian: apt-get install openssh-server (or make system)")
        # Below a folder that any account may pass through.
        self.folder = Path(tempfile.mkdtemp(prefix="labsite-ssh-", dir="/var/lib" if AS_ROOT else Path.home()))
        self.folder.chmod(0o711)
        self.home = self.folder / "home"
        self.home.mkdir(mode=0o700)
        self._own_account = AS_ROOT and not as_root
        self.user = self._account() if self._own_account else pwd.getpwuid(os.getuid()).pw_name
        if as_root:
            self.home.chmod(0o711)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        self.key = asyncssh.generate_private_key("ssh-ed25519")
        (self.folder / "authorized_keys").write_bytes(self.key.export_public_key())
        self.change_host_key()
        (self.folder / "sshd_config").write_text(CONFIG.format(port=self.port, folder=self.folder, user=self.user) + more + "\n")
        self.start()

    @property
    def private_key(self) -> str:
        return self.key.export_private_key().decode()

    def change_host_key(self, kind: str = "ssh-ed25519") -> None:
        """Another host key; it counts from the next start on."""
        self.host_key = asyncssh.generate_private_key(kind)
        path = self.folder / "host_key"
        path.touch(mode=0o600)
        path.write_bytes(self.host_key.export_private_key())

    @property
    def pinned(self) -> str:
        return self.host_key.export_public_key().decode().strip()

    def start(self) -> None:
        if AS_ROOT:
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        config, log = self.folder / "sshd_config", self.folder / "sshd.log"
        command = [str(SSHD), "-D", "-f", str(config), "-E", str(log)]
        self.process = subprocess.Popen(command, env={"PATH": "/usr/bin:/bin"}, stdin=subprocess.DEVNULL)
        until = time.monotonic() + 10
        while time.monotonic() < until:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1) as line:
                if line.recv(4) == b"SSH-":
                    return
            assert self.process.poll() is None, log.read_text()
            time.sleep(0.01)
        raise AssertionError("sshd does not answer")

    def stop(self) -> None:
        """No new connections, and none of the old ones; what runs on the host goes on."""
        self.process.send_signal(signal.SIGSTOP)  # so that no connection comes in between
        self.cut()
        self.process.terminate()
        self.process.send_signal(signal.SIGCONT)
        self.process.wait(10)

    def cut(self, number: int = signal.SIGKILL) -> int:
        """Kill the daemon's processes of every open connection, as a lost link would end them (or signal them otherwise); how many."""
        killed = 0
        for pid in descendants(self.process.pid):
            with contextlib.suppress(OSError):
                if b"sshd" in Path(f"/proc/{pid}/cmdline").read_bytes():
                    os.kill(pid, number)
                    killed += 1
        return killed

    def connections(self) -> int:
        """How many connections the daemon holds."""
        lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
        return sum(line.split()[1].endswith(f":{self.port:04X}") and line.split()[3] == "01" for line in lines)

    def close(self) -> None:
        self.stop()
        if self._own_account:
            until = time.monotonic() + 20
            while subprocess.run(["userdel", self.user], capture_output=True, check=False).returncode != 0:
                # Something of the account still lives: it is ended, and has to be gone from the table of processes.
                assert time.monotonic() < until, f"the account {self.user} could not be removed"
                for pid in processes_of(self.user):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                time.sleep(0.05)
        remove_tree(self.folder)

    def _account(self) -> str:
        user = f"labpool-{secrets.token_hex(4)}"
        command = ["useradd", "--system", "--no-create-home", "--home-dir", str(self.home), "--shell", "/bin/sh", user]
        subprocess.run(command, check=True, capture_output=True)
        subprocess.run(["usermod", "-p", "*", user], check=True, capture_output=True)  # without PAM a locked account is refused
        shutil.chown(self.home, user, user)
        return user


def processes_of(user: str) -> list[int]:
    """Living processes of an account."""
    uid = pwd.getpwnam(user).pw_uid
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if path.stat().st_uid == uid:
                found.append(int(path.name))
    return found
