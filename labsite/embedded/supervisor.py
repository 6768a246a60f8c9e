"""Keeps the programs of one installation running until someone asks for the end, and ends them in order."""

import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import TextIO

from labsite.embedded.children import Child, start
from labsite.embedded.home import CHECKOUT, Home, StartError
from labsite.embedded.servers import STEADY_SECONDS, Servers

LOOK_SECONDS = 0.2
FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS = 0.5, 30.0


class Progress:
    """Lines for the person at the terminal, with seconds since the start."""

    def __init__(self, stream: TextIO) -> None:
        self.began = time.monotonic()
        self.stream = stream

    def __call__(self, line: str) -> None:
        self.block(f"{time.monotonic() - self.began:6.1f} s  {line}")

    def block(self, text: str) -> bool:
        """Print; False where the reader has gone away, which must not stop the stopping."""
        try:
            print(text, file=self.stream, flush=True)
        except OSError:
            return False
        return True


class Stop:
    """Remembers that Ctrl-C or SIGTERM asked for the end. Signals only set a mark, so that no clean-up is torn apart."""

    def __init__(self) -> None:
        self._asked = threading.Event()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._ask)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        self._asked.set()

    @property
    def asked(self) -> bool:
        return self._asked.is_set()

    def check(self) -> None:
        """Raises KeyboardInterrupt where the end was asked for."""
        if self.asked:
            raise KeyboardInterrupt

    def wait(self, seconds: float) -> bool:
        return self._asked.wait(seconds)


@dataclass
class Program:
    """A long-running program of labsite: started again when it falls."""

    name: str
    argv: Sequence[str]
    child: Child | None = None
    started: float = 0.0
    wait_seconds: float = FIRST_WAIT_SECONDS
    due: float = 0.0


@dataclass
class Supervisor:
    """Starts programs with `environment`, restarts those that fall, ends them in the order asked for."""

    home: Home
    environment: Mapping[str, str]
    report: Callable[[str], None]
    stop: Stop
    programs: list[Program] = field(default_factory=list)

    def launch(self, name: str, argv: Sequence[str]) -> Child:
        """Start a program that ends by itself."""
        return start(name, argv, self.home.logs, self.environment, cwd=str(CHECKOUT))

    def keep(self, name: str, argv: Sequence[str]) -> Child:
        """Start a program that shall run until the end."""
        program = Program(name, argv)
        self.programs.append(program)
        return self._start(program)

    def finish(self, child: Child, what: str) -> None:
        """Wait for a step to end well. StartError where it failed, KeyboardInterrupt where the end was asked for."""
        try:
            while child.code is None:
                self.stop.check()
                time.sleep(0.02)
        finally:
            child.stop(10)
            child.end_group()
        if child.code != 0:
            raise StartError(f"{what} failed with code {child.code}: {child.last_words()}")

    def watch(self, servers: Servers, background: list[Child]) -> None:
        """Return when the end was asked for. A server that falls is started again; StartError where it does not stay up.

        A `background` child is work that ends by itself; it is taken off the list with a line that says how it went.
        """
        while not self.stop.wait(LOOK_SECONDS):
            if server := servers.fallen():
                self.report(f"{server.name} ended with code {server.code}; starting it again (log: {server.log})")
                servers.start_again(server)
            for program in self.programs:
                self._look_after(program)
            for child in [child for child in background if child.code is not None]:
                background.remove(child)
                self.report(f"{child.name} ready" if child.code == 0 else f"{child.name} failed: {child.last_words()}")

    def end(self, *names: str, seconds: float = 15.0) -> None:
        """End the programs whose names begin with one of `names`: all are asked at once, those that stay are killed."""
        chosen = [program.child for program in self.programs if program.child and program.name.startswith(names)]
        self.programs = [program for program in self.programs if not program.name.startswith(names)]
        for child in chosen:
            if child.code is None:
                child.process.send_signal(child.ends_on)
        deadline = time.monotonic() + seconds
        for child in chosen:
            while child.code is None and time.monotonic() < deadline:
                time.sleep(0.02)
            if child.code is None:
                self.report(f"{child.name} did not end within {seconds:.0f} s; killed")
                child.kill()

    def _start(self, program: Program) -> Child:
        program.child = self.launch(program.name, program.argv)
        program.started = time.monotonic()
        program.due = 0.0
        return program.child

    def _look_after(self, program: Program) -> None:
        now = time.monotonic()
        if program.due:
            if now >= program.due:
                self._start(program)
        elif program.child and program.child.code is not None:
            if now - program.started > STEADY_SECONDS:
                program.wait_seconds = FIRST_WAIT_SECONDS
            ended = f"{program.name} ended with code {program.child.code}"
            self.report(f"{ended}; starting it again in {program.wait_seconds:.1f} s (log: {program.child.log})")
            program.due = now + program.wait_seconds
            program.wait_seconds = min(program.wait_seconds * 2, LONGEST_WAIT_SECONDS)
