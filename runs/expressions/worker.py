"""Asking the process that evaluates expressions (runs/expressions/process.py), and killing it where an answer takes longer than 250 ms."""

import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from django.conf import settings

from runs.expressions.source import VARIABLES, BadExpression, check_names, check_text

SECONDS = 0.25  # for one answer
START_SECONDS = 20  # of the process, and for taking in what stands around an expression: its time is the machine's, not the expression's
TOGETHER = 30.0  # for all answers of one asking: a simulation asks of thousands of decisions, while somebody waits
KILLS = 2  # as often one expression may have to be stopped before it is asked no more
STOPPED = "It took longer than 250 ms and was stopped."
SPENT = f"All expressions together took longer than {TOGETHER:.0f} seconds; nothing more was asked."
ENDED = "The process that evaluates ended by it."
MODULE = ["-m", "runs.expressions.process"]


@dataclass(frozen=True, slots=True)
class Said:
    """`holds` is None where nobody can tell; `fault` says why, in one line."""

    holds: bool | None
    fault: str = ""

    def as_json(self) -> dict[str, Any]:
        return {"holds": self.holds, "fault": self.fault}


class _NoAnswer(Exception):  # said in the answer, never raised to a caller
    pass


class Asking:
    """A process for as long as several questions take; it starts with the first of them, and anew after it had to be killed.

    `with Asking() as asking: asking.say({"best > 0.9"}, {"best": 0.93})`
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped: dict[str, int] = {}
        self._read: dict[str, tuple[str, ...]] = {}
        self._spent = 0.0  # seconds

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._end()

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None else None

    @property
    def is_spent(self) -> bool:
        """Has it asked for as long as it may? Then it says nothing more but that nobody can tell."""
        return self._spent >= TOGETHER

    def check(self, source: str) -> None:
        """Read an expression and evaluate nothing. Raises BadExpression."""
        self._reads(source)

    def say(self, sources: Iterable[str], variables: Mapping[str, Any]) -> dict[str, Said]:
        """What each expression says where the variables stand around it. Raises nothing for what they hold."""
        return {source: self._say(source, variables) for source in sources}

    def _say(self, source: str, variables: Mapping[str, Any]) -> Said:
        if self._stopped.get(source, 0) >= KILLS:
            return Said(None, STOPPED)
        if self.is_spent:
            return Said(None, SPENT)
        began = time.monotonic()
        try:
            reads = self._reads(source)  # a version that was kept may be older than a rule
            self._ask({"variables": {name: variables.get(name) for name in reads}}, START_SECONDS)
            answer = self._ask({"do": "say", "expression": source}, SECONDS)
        except (_NoAnswer, BadExpression) as fault:
            self._stopped[source] = self._stopped.get(source, 0) + 1
            return Said(None, str(fault))
        finally:
            self._spent += time.monotonic() - began
        return Said(answer.get("value"), answer.get("fault", ""))

    def _reads(self, source: str) -> tuple[str, ...]:
        """The variables that it reads. Raises BadExpression."""
        known = self._read.get(source)
        if known is not None:
            return known
        bound = check_text(source)
        try:
            answer = self._ask({"do": "read", "expression": source}, SECONDS)
        except _NoAnswer as none:
            raise BadExpression(str(none)) from none
        if "fault" in answer:
            raise BadExpression(answer["fault"])
        check_names(answer["calls"], answer["variables"], bound)
        reads = self._read[source] = tuple(name for name in VARIABLES if name in answer["variables"])
        return reads

    def _ask(self, request: dict[str, Any], seconds: float) -> dict[str, Any]:
        process = self._process or self._start()
        try:
            assert process.stdin is not None
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.flush()
            line = _line(process, seconds)
        except BrokenPipeError:
            line = b""
        except TimeoutError:
            self._end()
            raise _NoAnswer(STOPPED) from None
        if not line:
            self._end()
            raise _NoAnswer(ENDED)
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _start(self) -> "subprocess.Popen[bytes]":
        self._process = subprocess.Popen(  # noqa: S603  # our own module; expressions travel on stdin
            [sys.executable, *MODULE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=settings.BASE_DIR,
            env={"PATH": os.environ.get("PATH", os.defpath)},
            start_new_session=True,
            bufsize=0,
        )
        try:
            if not _line(self._process, START_SECONDS):
                self._end()
                raise _NoAnswer(ENDED)
        except TimeoutError:
            self._end()
            raise _NoAnswer("The process that evaluates did not start.") from None
        return self._process

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()


def _line(process: "subprocess.Popen[bytes]", seconds: float) -> bytes:
    """The next line; empty where the process has ended. Raises TimeoutError."""
    assert process.stdout is not None
    end = time.monotonic() + seconds
    found = b""
    with selectors.DefaultSelector() as ready:
        ready.register(process.stdout, selectors.EVENT_READ)
        while not found.endswith(b"\n"):
            if not ready.select(max(0.0, end - time.monotonic())):
                raise TimeoutError
            piece = os.read(process.stdout.fileno(), 65_536)
            if not piece:
                return b""
            found += piece
    return found
