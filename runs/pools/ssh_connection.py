"""A connection to a host over SSH, kept open for a while, and the sessions of a program there that answers questions.

Coroutines of one event loop; ssh_thread.py has it. A connection is closed after `IDLE_SECONDS`.
"""

import asyncio
import itertools
import json
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import asyncssh

from runs.pools.base import NoAnswer, NotPlain, PoolError
from runs.pools.far import GREETING
from runs.pools.ssh_access import Access, UnreachableError, connect

CALL_SECONDS = 30.0
IDLE_SECONDS = 60.0
CLOSE_SECONDS = 2.0
MAX_SESSIONS = 8  # of one connection at a time; sshd allows ten
MAX_NOISE_BYTES = 1 << 16  # what a login shell may print before the program speaks
CLOCK_TOLERANCE_SECONDS = 5.0

Pieces = Callable[[], Iterator[bytes]]

_NUMBERS = itertools.count(1)  # of questions, by which an answer is known


class BrokenError(Exception):
    """A session or its connection ended before it had answered; with what the program said on stderr, which is mostly nothing."""


class NotThereError(Exception):
    """The program did not greet; what the shell said instead, and its exit status."""

    def __init__(self, status: int | None, said: str) -> None:
        super().__init__(said)
        self.status, self.said = status, said


class Session:
    """The program on the far side of one channel; one question at a time."""

    def __init__(self, process: "asyncssh.SSHClientProcess[bytes]") -> None:
        self._process = process

    async def greet(self) -> None:
        """Skip what the login shell says, up to the greeting. Raises NotThereError."""
        noise = 0
        while line := await self._process.stdout.readline():
            noise += len(line)
            if line.endswith(GREETING):
                return
            if noise > MAX_NOISE_BYTES:
                raise NotThereError(None, "the login shell prints without end")
        said = (await self._process.stderr.read(4096)).decode(errors="replace")
        await self._process.wait_closed()
        raise NotThereError(self._process.exit_status, said.strip())

    async def ask(self, request: bytes, pieces: Pieces | None, seconds: float) -> tuple[dict[str, Any], bytes]:
        """The answer, and the bytes after it where it announces some. Raises BrokenError, TimeoutError."""
        stdin, stdout = self._process.stdin, self._process.stdout
        cut = False
        try:
            stdin.write(request + b"\n")
            source = iter(()) if pieces is None else pieces()
            while piece := await asyncio.to_thread(next, source, b""):
                stdin.write(piece)
                async with asyncio.timeout(CALL_SECONDS):
                    await stdin.drain()
        except (OSError, asyncssh.Error) as error:
            if isinstance(error, TimeoutError):
                raise
            cut = True  # it may have said why
        async with asyncio.timeout(CLOSE_SECONDS if cut else seconds):
            try:
                answer = json.loads((await stdout.readline()) or b"null")
                if not isinstance(answer, dict):
                    raise EOFError
                return answer, await stdout.readexactly(answer["bytes"]) if "bytes" in answer else b""
            except (asyncssh.Error, OSError, EOFError, ValueError) as error:
                if isinstance(error, TimeoutError):
                    raise
                raise BrokenError(await self._last_words()) from error

    async def _last_words(self) -> str:
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                said = (await self._process.stderr.read(1 << 14)).decode(errors="replace").splitlines()
        except (asyncssh.Error, OSError):
            return ""
        return said[-1][:300] if said else ""

    async def take(self, count: int) -> bytes:
        """Exactly so many more bytes. Raises BrokenError, TimeoutError."""
        async with asyncio.timeout(CALL_SECONDS):
            try:
                return await self._process.stdout.readexactly(count)
            except (asyncssh.Error, EOFError, ConnectionError) as error:
                raise BrokenError from error

    def acknowledge(self) -> None:
        """Say that a frame was taken. Without it asyncssh would take in whatever comes, however slowly it is read."""
        self._process.stdin.write(b"+")

    async def take_line(self) -> bytes:
        async with asyncio.timeout(CALL_SECONDS):
            return await self._process.stdout.readline()

    def close(self) -> None:
        """End the channel; the program ends with its stdin."""
        self._process.close()


class Connection:
    """A host. Its coroutines run in the background thread only."""

    def __init__(self, access: Access) -> None:
        self.access = access
        self.offset_seconds = 0.0  # of the host's clock before ours, where they differ
        self._client: asyncssh.SSHClientConnection | None = None
        self._connecting = asyncio.Lock()
        self._room = asyncio.Semaphore(MAX_SESSIONS)
        self._idle: dict[str, list[Session]] = {}
        self._busy = 0
        self._used = time.monotonic()
        self._closing: asyncio.TimerHandle | None = None

    async def ask(
        self, command: str, request: Mapping[str, object], *, pieces: Pieces | None = None, seconds: float | None = None
    ) -> tuple[dict[str, Any], bytes]:
        """Ask the program that `command` starts. A session that had gone is replaced once: every question may be asked twice.

        Raises PoolError, NotThereError."""
        session, answer, data = await self._asked(command, request, pieces, CALL_SECONDS if seconds is None else seconds)
        if "error" in answer and pieces is not None:
            self.drop(session)  # it has not read all of them
        else:
            self.give_back(command, session)
        return _checked(answer), data

    async def open(self, command: str, request: Mapping[str, object]) -> Session:
        """Ask, and keep the session, from which more is to be taken; the caller gives it back, or drops it."""
        session, answer, _ = await self._asked(command, request, None, CALL_SECONDS)
        if "error" in answer:
            self.give_back(command, session)
        _checked(answer)
        return session

    async def run(self, command: str, stdin: bytes) -> tuple[int | None, bytes, str]:
        """Run one command to its end: exit status, stdout, stderr. Raises PoolError."""
        client = await self._connected()
        try:
            done = await client.run(command, input=stdin, encoding=None, timeout=CALL_SECONDS, check=False)
        except (asyncssh.Error, OSError) as error:
            raise self._broken() from error
        out, err = done.stdout or b"", done.stderr or b""
        return done.exit_status, bytes(out) if not isinstance(out, str) else out.encode(), _words(err)

    def give_back(self, command: str, session: Session) -> None:
        self._idle.setdefault(command, []).append(session)
        self._leave()

    def drop(self, session: Session) -> None:
        session.close()
        self._leave()

    async def close(self) -> None:
        """End the connection. What runs on the host goes on."""
        client, self._client, self._idle = self._client, None, {}
        if client is not None:
            client.close()
            try:
                async with asyncio.timeout(CLOSE_SECONDS):
                    await client.wait_closed()
            except (TimeoutError, OSError, asyncssh.Error):
                client.abort()

    async def _asked(
        self, command: str, request: Mapping[str, object], pieces: Pieces | None, seconds: float
    ) -> tuple[Session, dict[str, Any], bytes]:
        number = next(_NUMBERS)
        try:
            line = json.dumps({**request, "number": number}, allow_nan=False).encode()
        except ValueError as error:
            raise PoolError("the job has a number in it that JSON has no word for") from error
        await self._enter()
        try:
            while True:
                session, reused = await self._session(command)
                began = time.time()
                try:
                    answer, data = await session.ask(line, pieces, seconds)
                    if answer.get("number") != number:  # one that came twice, or that nobody waited for
                        raise BrokenError("an answer came that did not belong to its question")
                except BrokenError as error:
                    session.close()
                    if not reused:
                        raise self._broken(str(error)) from error
                    self._forget_idle()
                except TimeoutError as error:
                    self._abort()
                    raise UnreachableError(f"{self.access} did not answer in time") from error
                except BaseException:
                    session.close()
                    raise
                else:
                    self._compare_clocks(answer, began)
                    return session, answer, data
        except BaseException:
            self._leave()
            raise

    async def _session(self, command: str) -> tuple[Session, bool]:
        if self._client is not None and self._client.is_closed():
            self._abort()
        if waiting := self._idle.get(command):
            return waiting.pop(), True
        for again in (True, False):
            known = self._client is not None
            client = await self._connected()
            try:
                async with asyncio.timeout(CALL_SECONDS):
                    session = Session(await client.create_process(command, encoding=None))
                    await session.greet()
                    return session, False
            except TimeoutError as error:
                self._abort()
                raise UnreachableError(f"{self.access} did not answer in time") from error
            except (asyncssh.Error, OSError, EOFError) as error:
                self._abort()
                if not (known and again):
                    raise self._broken() from error
        raise self._broken()

    async def _connected(self) -> asyncssh.SSHClientConnection:
        async with self._connecting:
            if self._client is None:
                self._client = await connect(self.access)
                self._watch_idleness()
            return self._client

    async def _enter(self) -> None:
        try:
            async with asyncio.timeout(CALL_SECONDS):
                await self._room.acquire()
        except TimeoutError as error:
            raise NoAnswer(f"all {MAX_SESSIONS} sessions with {self.access} are in use") from error
        self._busy += 1

    def _leave(self) -> None:
        self._busy -= 1
        self._used = time.monotonic()
        self._room.release()

    def _watch_idleness(self) -> None:
        if self._closing is not None:
            self._closing.cancel()  # of the connection before
        left = self._used + IDLE_SECONDS - time.monotonic()
        if self._client is None:
            return
        if self._busy or left > 0:
            self._closing = asyncio.get_running_loop().call_later(left if left > 0 else 1.0, self._watch_idleness)
        else:
            self._closing = None
            task = asyncio.ensure_future(self.close())
            task.add_done_callback(lambda done: done.exception())

    def _forget_idle(self) -> None:
        for waiting in self._idle.values():
            for session in waiting:
                session.close()
        self._idle = {}

    def _abort(self) -> None:
        client, self._client, self._idle = self._client, None, {}
        if client is not None:
            client.abort()

    def _broken(self, said: str = "") -> NoAnswer:
        return NoAnswer(f"the far side on {self.access} broke off: {said!a}" if said else f"the connection to {self.access} broke")

    def _compare_clocks(self, answer: Mapping[str, Any], began: float) -> None:
        """How far the host's clock is before ours, in whole seconds, so that the times of an attempt stay the same from look to look."""
        ended, there = time.time(), answer.get("now")
        if isinstance(there, float) and ended - began < CLOCK_TOLERANCE_SECONDS / 2:
            found = there - (began + ended) / 2
            if abs(found - self.offset_seconds) > CLOCK_TOLERANCE_SECONDS / 2:
                self.offset_seconds = float(round(found)) if abs(found) > CLOCK_TOLERANCE_SECONDS else 0.0


def _checked(answer: dict[str, Any]) -> dict[str, Any]:
    if "error" in answer:
        kind = NotPlain if answer.get("is_not_plain") is True else NoAnswer if answer.get("is_no_answer") is True else PoolError
        raise kind(str(answer["error"])[:1000])
    return answer


def _words(said: object) -> str:
    return bytes(said).decode(errors="replace").strip() if isinstance(said, bytes | bytearray | memoryview) else str(said).strip()
