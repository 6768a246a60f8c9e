"""Starting and ending the programs that one installation consists of, each in a process group of its own."""

import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from labsite.embedded.home import StartError

PR_SET_PDEATHSIG = 1  # linux/prctl.h
LOG_BYTES = 10_000_000
_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class Account:
    """The system account a server drops to when labsite runs as root."""

    name: str
    uid: int
    gid: int


@dataclass
class Child:
    """One program that we started. `name` is also the name of its log; `output` reads what it wrote since then."""

    name: str
    process: subprocess.Popen[bytes]
    output: int  # descriptor of a file
    began_at: int  # where in `output` its own words begin
    log: Path
    ends_on: signal.Signals

    def __del__(self) -> None:
        os.close(self.output)

    @property
    def code(self) -> int | None:
        """Exit code, minus the signal's number where one ended it; None while it runs."""
        return self.process.poll()

    def stop(self, seconds: float) -> None:
        """End it: its own signal first, SIGKILL to its whole group after `seconds`."""
        if self.code is not None:
            return
        self.process.send_signal(self.ends_on)
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """SIGKILL to its whole process group."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def end_group(self) -> None:
        """SIGKILL to what it may have left behind in its group."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)

    def said(self) -> str:
        """All that it wrote since its start."""
        length = os.fstat(self.output).st_size - self.began_at
        return os.pread(self.output, length, self.began_at).decode(errors="replace")

    def last_words(self, lines: int = 4) -> str:
        """The end of its output in one line, for a message, and where the rest is."""
        text = " | ".join(line.strip() for line in self.said().splitlines()[-lines:] if line.strip())
        return f"{text or 'it said nothing'} (all of it in {self.log})"


def start(
    name: str,
    argv: Sequence[str],
    logs: Path,
    environment: Mapping[str, str],
    ends_on: signal.Signals = signal.SIGTERM,
    account: Account | None = None,
    cwd: str = "/",
) -> Child:
    """Start a program in a session of its own, so that the terminal's Ctrl-C reaches only us, with its output in `<logs>/<name>.log`.

    It gets `ends_on` when we die in whatever way. The kernel sends that when the *thread* ends that started it: call from the main thread.
    """

    def ask_for_death_signal() -> None:
        _libc.prctl(PR_SET_PDEATHSIG, int(ends_on))

    log = logs / f"{name}.log"
    if log.exists() and log.stat().st_size > LOG_BYTES:
        log.replace(log.with_suffix(".log.1"))
    output = os.open(log, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
    began_at = os.fstat(output).st_size
    process = subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        start_new_session=True,
        preexec_fn=ask_for_death_signal,
        cwd=cwd,
        env=dict(environment),
        user=account.uid if account else None,
        group=account.gid if account else None,
        extra_groups=[] if account else None,
    )
    return Child(name, process, output, began_at, log, ends_on)


def wait_for_answer(child: Child, answers: Callable[[], bool], seconds: float, check: Callable[[], None] = lambda: None) -> None:
    """Ask every 20 ms until `answers` is true. Raises StartError where the child ends or `seconds` pass; `check` may raise to give up."""
    deadline = time.monotonic() + seconds
    while not answers():
        check()
        if child.code is not None:
            raise StartError(f"{child.name} ended with code {child.code} before it answered: {child.last_words()}")
        if time.monotonic() > deadline:
            raise StartError(f"{child.name} did not answer within {seconds:.0f} s: {child.last_words()}")
        time.sleep(0.02)


def wait_until_left(folder: Path, seconds: float = 30.0) -> None:
    """Wait until no living process works in `folder`: a server that was orphaned by a killed supervisor ends by itself.

    PostgreSQL and Valkey keep their data folder as working directory; a process id in a file may long belong to an innocent.
    Raises StartError after `seconds`, naming the process.
    """
    target = os.path.realpath(folder)
    deadline = time.monotonic() + seconds
    while pid := _resident(target):
        if time.monotonic() > deadline:
            raise StartError(f"process {pid} still works in {folder}; end it first")
        time.sleep(0.02)


def _resident(folder: str) -> int | None:
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            if os.readlink(f"/proc/{entry}/cwd") != folder:
                continue
            state = Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue  # gone meanwhile, a zombie, or another user's
        if state not in "ZX":
            return int(entry)
    return None
