"""The controller's side of GTP: a peer as a process of its own group, asked one command at a time, each with a deadline.

A peer that answers late, wrong or not at all, or that ends, raises PeerError with a sentence that says so; its group of processes is ended
then, and no more is asked of it.
"""

import contextlib
import os
import re
import selectors
import signal
import subprocess
import time
from collections.abc import Sequence
from types import TracebackType

from gtp import vertex_text

MAX_ANSWER_BYTES = 256 * 1024
GRACE_SECONDS = 1.0
_ANSWER = re.compile(r"([=?])([0-9]*)(?=\s|$)(.*)", re.DOTALL)


class PeerError(RuntimeError):
    """The peer does not keep to the protocol; the message names it and says how."""


class Refused(RuntimeError):
    """The peer answers `?`, as the protocol lets it: the command failed, the peer goes on. The message is the peer's own."""


class Peer:
    """A GTP engine under our control. Use as a context manager; `name` is for messages, `seconds` is the time for one answer."""

    def __init__(self, argv: Sequence[str], *, name: str, seconds: float = 10.0, environment: dict[str, str] | None = None) -> None:
        """Start the program. Raises PeerError where it cannot be started."""
        self.name, self.seconds = name, seconds
        self._number, self._left = 0, b""
        try:
            self._process = subprocess.Popen(  # noqa: S603  # a list, no shell
                list(argv), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0, env=environment,
                start_new_session=True,
            )  # fmt: skip
        except OSError as exc:
            raise PeerError(f"{name} cannot be started: {exc.strerror}") from exc
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._to, self._from = self._process.stdin, self._process.stdout
        os.set_blocking(self._to.fileno(), False)
        os.set_blocking(self._from.fileno(), False)

    def __enter__(self) -> "Peer":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def ask(self, command: str, *, seconds: float | None = None) -> str:
        """The answer to a command, without its `=`. Raises Refused where the peer refuses it, PeerError where there is no proper answer."""
        if "\n" in command:
            raise ValueError("one line at a time")
        if self._to.closed:
            raise PeerError(f"{self.name} was asked {command!r} after its end")
        allowed = self.seconds if seconds is None else seconds
        self._number += 1
        try:
            answer = self._exchange(f"{self._number} {command}\n".encode(), command, time.monotonic() + allowed, allowed)
            return self._read(answer, command)
        except PeerError:
            self.kill()
            raise

    def set_up(self, size: int, komi: float) -> None:
        """An empty board."""
        for command in (f"boardsize {size}", "clear_board", f"komi {komi:g}"):
            self.ask(command)

    def play(self, size: int, colour: str, move: int) -> None:
        self.ask(f"play {colour} {vertex_text(size, move)}")

    def close(self) -> None:
        """Ask it to quit; end its group of processes in any case."""
        if self._process.poll() is None and not self._to.closed:
            with contextlib.suppress(OSError):
                self._to.write(b"quit\n")
                self._to.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(GRACE_SECONDS)
        self.kill()

    def kill(self) -> None:
        """End the group at once; the leader may have gone, those it has started may not."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        with contextlib.suppress(OSError):
            self._to.close()
        self._from.close()

    def _exchange(self, line: bytes, command: str, deadline: float, allowed: float) -> bytes:
        """Write a line and read up to the empty line that ends an answer."""
        with selectors.DefaultSelector() as waiting:
            waiting.register(self._from, selectors.EVENT_READ)
            waiting.register(self._to, selectors.EVENT_WRITE)
            while b"\n\n" not in self._left:
                ready = waiting.select(max(0.0, deadline - time.monotonic()))
                if not ready or time.monotonic() >= deadline:
                    raise PeerError(f"{self.name} has not answered {command!r} within {allowed:g} s")
                for key, _ in ready:
                    if key.fileobj is self._to:
                        line = line[self._write(line, command) :]
                        if not line:
                            waiting.unregister(self._to)
                    else:
                        self._take(command)
        answer, _, self._left = self._left.partition(b"\n\n")
        return answer

    def _write(self, line: bytes, command: str) -> int:
        try:
            return os.write(self._to.fileno(), line)
        except BrokenPipeError:
            raise PeerError(f"{self.name} ended before {command!r}{self._how_it_ended()}") from None

    def _take(self, command: str) -> None:
        some = os.read(self._from.fileno(), 65_536)
        if not some:
            raise PeerError(f"{self.name} ended without an answer to {command!r}{self._how_it_ended()}")
        self._left = (self._left + some).replace(b"\r", b"")
        if len(self._left) > MAX_ANSWER_BYTES:
            raise PeerError(f"{self.name} answers {command!r} with more than {MAX_ANSWER_BYTES:,} bytes")

    def _how_it_ended(self) -> str:
        try:
            code = self._process.wait(GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            return ", closing its pipe"
        return f", with exit code {code}" if code >= 0 else f", by signal {-code}"

    def _read(self, answer: bytes, command: str) -> str:
        text = answer.decode("utf-8", errors="replace").lstrip("\n")
        found = _ANSWER.fullmatch(text)
        if found is None:
            raise PeerError(f"{self.name} answers {command!r} with {text[:60]!r}, which begins with neither = nor ?")
        mark, number, content = found.groups()
        if number != str(self._number):
            under = f"the id {number[:20]}" if number else "no id"
            raise PeerError(f"{self.name} answers {command!r} under {under}; it was asked under {self._number}")
        if mark == "?":
            raise Refused(content.strip())
        return str(content.strip())
