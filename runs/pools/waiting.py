"""A launcher that waits for starts: one for each process that starts attempts, which forks for each of them. Three quarters of what a start costs
is the interpreter's own, and that is paid once.

Whoever it forks is what a launcher of its own would be: a session and a parent of its own, no environment, found by its folder
(`processes.launched`). It ends with the process that asks it. Standard library only (Python 3.8).
"""

from __future__ import annotations

import array
import atexit
import os
import select
import socket
import subprocess
import sys
import threading
from pathlib import Path

from runs.pools.base import NoAnswer
from runs.pools.isolation import LAUNCHER

ANSWER_SECONDS = 30.0
PATIENCE_SECONDS = 1.0
ROOM = " " * 1024  # on the launcher's command line, for the name of a folder; one with a longer name has a launcher of its own


class WaitingLauncher:
    """Of one process, used by all its threads."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._door: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._asked_by = 0

    def start(self, folder: Path) -> str:
        """What the launcher says; empty where it does not live, or died of it. Raises NoAnswer where it is silent."""
        try:
            reader, writer = os.pipe()
        except OSError:  # too many files are open
            return ""
        try:
            try:
                self._ask(folder, writer)
            except OSError:
                self.end()
                return ""
            finally:
                os.close(writer)
            poll = select.poll()
            poll.register(reader, select.POLLIN)
            if not poll.poll(ANSWER_SECONDS * 1000):
                self.end()
                raise NoAnswer("the launcher did not answer")
            said = os.read(reader, 1000).decode(errors="replace")
            if not said:  # killed with what it was asked for in its hands; the next one finds another
                self.end()
            return said
        finally:
            os.close(reader)

    def end(self) -> None:
        """Let it go; what it has started lives on. The next start has another one."""
        with self._guard:
            door, process, self._door, self._process = self._door, self._process, None, None
            if door is not None:
                door.close()
            if process is not None and self._asked_by == os.getpid():
                try:
                    process.wait(PATIENCE_SECONDS)
                except subprocess.TimeoutExpired:  # it stands still
                    process.kill()
                    process.wait()

    def _ask(self, folder: Path, writer: int) -> None:
        with self._guard:
            if self._door is None or self._asked_by != os.getpid():  # a fork of ours is another process, and has one of its own
                self._door, self._process = _launcher()
                self._asked_by = os.getpid()
            rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [writer]))
            self._door.sendmsg([os.fsencode(folder)], [rights])


def _launcher() -> tuple[socket.socket, subprocess.Popen[bytes]]:
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.settimeout(ANSWER_SECONDS)
    with its:
        nowhere = subprocess.DEVNULL
        call = [sys.executable, "-I", "-S", "-E", str(LAUNCHER), "wait", ROOM]
        try:
            process = subprocess.Popen(call, env={}, cwd="/", stdin=its.fileno(), stdout=nowhere, stderr=nowhere, start_new_session=True)  # noqa: S603 -- ours
        except OSError:
            ours.close()
            raise
    return ours, process


_waiting = WaitingLauncher()
start, end = _waiting.start, _waiting.end
atexit.register(end)
