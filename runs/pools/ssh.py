"""The pool of a host that is reached over SSH: a LocalPool on its side, asked through one kept connection.

Nothing need be installed there but Python 3.8: the files of travelling.py are sent once, into `<root>/launcher/<hash>/`, and the
launcher that starts an attempt from there keeps its limits while labsite and the connection are down. No argument of a command there is
anything but that path: names, jobs and secrets go through stdin, and what a run wrote is opened by the far side, which follows no link.
"""

import errno
import io
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

from runs.pools.arrive import PLACE
from runs.pools.base import JSON, PASSING, Exit, NoAnswer, Observation, Order, OutputFile, OutputList, PoolError, StagedFile, Status
from runs.pools.far import BROKEN, FRAME
from runs.pools.isolation import Isolation
from runs.pools.sending import Sized, pieces_of, sized
from runs.pools.ssh_access import Access
from runs.pools.ssh_connection import BrokenError, Connection, NotThereError, Pieces, Session
from runs.pools.ssh_thread import Background, background
from runs.pools.travelling import travelling

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

T = TypeVar("T")

STAGE_SECONDS = 900.0  # copying what is on the host already; sending has no limit as long as it gets on
MISSING_FILE = 2  # Python's exit status where the script is not there
_PLAIN = re.compile(r"[A-Za-z0-9._/][A-Za-z0-9._/-]*\Z", re.ASCII)
_LOADER = "import sys;i=sys.stdin.buffer;exec(i.read(int(i.readline())))"


@dataclass(frozen=True)
class FarHost:
    """What a host says of itself. `clock_offset_seconds`: how far its clock is before ours, 0 where within a few seconds. `engine`: what the
    scheduler that is reached there says of itself (`Scheduler.probe`), None where there is none."""

    python: str
    user: str
    isolations: tuple[Isolation, ...]
    cores: int
    memory_bytes: int
    free_bytes: int
    clock_offset_seconds: float
    engine: Mapping[str, JSON] | None = None


class SSHPool:
    """Attempts on another host.

    `root`: the pool's folder there, absolute or below the account's home, made where it is missing. `host_key`: the pinned public key.
    `private_key`: the text of ours, held in memory. `isolation`: one of those that `probe` names. `hidden`: folders there that no run may
    see. `python`: the environment there that runs find first on their PATH. `interpreter`: what runs the launcher, 3.8 or newer.
    `scheduler`: the engine there that starts the runs, as schedulers.py reads it; None where the host runs them itself.
    Every method raises PoolError where the host cannot be reached or does not answer: nothing is known of the attempt then.
    """

    def __init__(
        self,
        host: str,
        port: int,
        user: str,
        root: str,
        host_key: str,
        private_key: str,
        *,
        isolation: Isolation = Isolation.NONE,
        hidden: Sequence[str] = (),
        python: str | None = None,
        interpreter: str = "python3",
        scheduler: Mapping[str, JSON] | None = None,
    ) -> None:
        self._access = Access(host, port, user, host_key, private_key)
        self._root = _plain(root.removeprefix("~/").rstrip("/"), "the pool's folder")
        self._interpreter = _plain(interpreter, "the interpreter")
        self._settings = {"isolation": isolation.value, "hidden": list(hidden), "python": python, "scheduler": scheduler}
        name, _ = travelling()
        self._command = f"exec {self._interpreter} -I -S -E -X utf8 {self._root}/{PLACE}/{name}/runs/pools/far.py"

    def submit(self, order: Order) -> None:
        """Send what the host has not, stage, start. What was cut off goes on at the next try; staging alone starts nothing."""
        asked = {
            "job": order.job,
            "code": _named(order.code),
            "inputs": [[one.slug, _named(one.files)] for one in order.inputs],
            "secrets": order.secrets,
        }
        files = [*order.code, *(file for one in order.inputs for file in one.files)]
        need = self._ask("stage", order.workspace, order.key, seconds=STAGE_SECONDS, new=True, **asked)["need"]
        if need:
            wanted = {file.sha256: file for file in reversed(files) if file.sha256 in set(need)}
            self._send(sized(list(wanted.values())))
            if self._ask("stage", order.workspace, order.key, seconds=STAGE_SECONDS, new=True, **asked)["need"]:
                raise PoolError("the host did not keep the files that were sent")
        self._ask("start", order.workspace, order.key)

    def observe(self, workspace: str, key: str) -> Observation:
        """What the run folder there says; its times by our clock."""
        found = self._ask("observe", workspace, key)
        ahead = self._connection().offset_seconds
        beat, end = found["heartbeat_at"], found["exit"]
        exit_ = None if end is None else Exit(**end)
        if exit_ is not None:
            exit_ = replace(exit_, started_at=exit_.started_at - ahead, ended_at=exit_.ended_at - ahead)
        return Observation(Status(found["status"]), exit_, None if beat is None else beat - ahead, found["reason"], found["native"])

    def cancel(self, workspace: str, key: str, *, grace_seconds: float) -> None:
        self._ask("cancel", workspace, key, grace_seconds=grace_seconds)

    def read(self, workspace: str, key: str, name: str, *, offset: int, limit: int) -> bytes:
        """As every pool; at most 16 MiB at a time."""
        return self._exchange({"what": "read", "workspace": workspace, "key": key, "name": name, "offset": offset, "limit": limit})[1]

    def outputs(self, workspace: str, key: str) -> OutputList:
        answer = self._ask("outputs", workspace, key)
        found = OutputList(OutputFile(path, size) for path, size in answer["outputs"])
        found.skipped = answer["skipped"]
        found.left = {why: (count, first) for why, (count, first) in answer["left"].items()}
        return found

    def open_output(self, workspace: str, key: str, path: str) -> BinaryIO:
        """A stream, read from the host as it is read here; it cannot be wound back. OSError where the connection breaks meanwhile."""
        return self._stream({"what": "open", "workspace": workspace, "key": key, "path": path}, new=False)

    def open_path(self, path: str, *, below: Sequence[str], never: Sequence[str]) -> BinaryIO:
        """A stream like that of `open_output`. `never` counts too: the host may be this machine under another name."""
        return self._stream({"what": "path", "path": path, "below": list(below), "never": list(never)}, new=True)

    def living(self, workspace: str) -> list[str]:
        answer, _ = self._exchange({"what": "living", "workspace": workspace})
        return [str(key) for key in answer["keys"]]

    def remove(self, workspace: str, key: str) -> None:
        self._ask("remove", workspace, key)

    def tidy(self, *, older_than_seconds: float = 3600) -> int:
        """Remove there what was left half staged or half removed, and sent files that no attempt has used for a week."""
        removed: int = self._exchange({"what": "tidy", "older_than_seconds": older_than_seconds})[0]["removed"]
        return removed

    def probe(self) -> FarHost:
        """Connect, bring the launcher, and say what the host is: for "test connection". Makes the pool's folder."""
        answer, _ = self._exchange({"what": "probe"}, new=True)
        isolations = tuple(Isolation(one) for one in answer["isolations"])
        figures = {name: answer[name] for name in ("python", "user", "cores", "memory_bytes", "free_bytes", "engine")}
        return FarHost(isolations=isolations, clock_offset_seconds=self._connection().offset_seconds, **figures)

    def _stream(self, request: Mapping[str, object], *, new: bool) -> BinaryIO:
        whole = {**request, **self._settings}
        thread, connection = background(), self._connection()
        session = self._there(lambda: thread.call(connection.open(self._command, whole)), new=new)
        return io.BufferedReader(FarFile(thread, connection, session, self._command), 1 << 18)

    def _connection(self) -> Connection:
        return background().connection(self._access)

    def _ask(
        self, what: str, workspace: str, key: str, *, seconds: float | None = None, new: bool = False, **more: object
    ) -> dict[str, Any]:
        return self._exchange({"what": what, "workspace": workspace, "key": key, **more}, seconds=seconds, new=new)[0]

    def _exchange(
        self, request: Mapping[str, object], *, pieces: Pieces | None = None, seconds: float | None = None, new: bool = False
    ) -> tuple[dict[str, Any], bytes]:
        thread, connection = background(), self._connection()
        whole = {**request, **self._settings}

        def act() -> tuple[dict[str, Any], bytes]:
            return thread.call(connection.ask(self._command, whole, pieces=pieces, seconds=seconds))

        return self._there(act, new=new, is_long=pieces is not None or seconds is not None)

    def _send(self, files: Sequence[Sized]) -> None:
        listed = [[one.file.path, one.file.sha256, one.bytes] for one in files]
        self._exchange({"what": "keep", "files": listed}, pieces=lambda: pieces_of(files), new=True)

    def _there(self, act: Callable[[], T], *, new: bool, is_long: bool = False) -> T:
        """Act; where the launcher of this version is not on the host, bring it and act again. `new`: the pool's folder may be made."""
        with background().line(self._access, is_long=is_long):
            return self._with_launcher(act, new=new)

    def _with_launcher(self, act: Callable[[], T], *, new: bool) -> T:
        try:
            return act()
        except NotThereError as refused:
            if refused.status != MISSING_FILE:
                raise PoolError(self._refusal(refused)) from refused
        self._bring(new=new)
        try:
            return act()
        except NotThereError as refused:
            raise PoolError(self._refusal(refused)) from refused

    def _refusal(self, refused: NotThereError) -> str:
        said = refused.said.splitlines()[-1][:300] if refused.said else "nothing"
        return f"{self._interpreter} could not be run by {self._access}: it said {said!a} (status {refused.status})"

    def _bring(self, *, new: bool) -> None:
        program = (Path(__file__).with_name("arrive.py")).read_bytes()
        name, files = travelling()
        asked = json.dumps({"root": self._root, "name": name, "files": files, "new": new}).encode()
        stdin = str(len(program)).encode() + b"\n" + program + asked + b"\n"
        status, out, said = background().call(self._connection().run(f"exec {self._interpreter} -I -S -E -X utf8 -c '{_LOADER}'", stdin))
        try:
            answer = json.loads(out.splitlines()[-1])
            problem, passes = answer["labsite"], answer["errno"] in PASSING
        except (IndexError, ValueError, KeyError, TypeError):
            raise PoolError(self._refusal(NotThereError(status, said))) from None
        if problem:
            raise (NoAnswer if passes else PoolError)(str(problem)[:500])


class FarFile(io.RawIOBase):
    """An output as it comes from the host, frame by frame."""

    def __init__(self, thread: Background, connection: Connection, session: Session, command: str) -> None:
        self._thread, self._connection, self._command = thread, connection, command
        self._session: Session | None = session
        self._rest = memoryview(b"")
        self._problem: OSError | None = None  # what was cut short never looks like the end

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        """OSError where the connection breaks, or the file cannot be read on."""
        if self._problem:
            raise self._problem
        if not self._rest and self._session is not None:
            try:
                self._rest = memoryview(self._thread.call(self._frame(self._session)))
            except (BrokenError, OSError) as error:  # a timeout is an OSError as well
                self._end(whole=False)
                words = f"the connection to {self._connection.access} broke"
                self._problem = error if isinstance(error, OSError) and error.errno == errno.EIO else OSError(errno.ECONNRESET, words)
                raise self._problem from error
        target = memoryview(buffer).cast("B")
        taken = min(len(target), len(self._rest))
        target[:taken] = self._rest[:taken]
        self._rest = self._rest[taken:]
        return taken

    def close(self) -> None:
        self._end(whole=False)
        super().close()

    async def _frame(self, session: Session) -> bytes:
        (length,) = FRAME.unpack(await session.take(FRAME.size))
        if length == BROKEN:
            raise OSError(errno.EIO, str(json.loads(await session.take_line())["error"]))
        if length == 0:
            self._end(whole=True)
            return b""
        frame = await session.take(length)
        session.acknowledge()
        return frame

    def _end(self, *, whole: bool) -> None:
        """Give the session back at the end of the file; before it, it is of no further use. Waits for nothing: the collector may call it."""
        session, self._session = self._session, None
        if session is None or self._thread.loop.is_closed():
            return
        if whole:
            self._thread.loop.call_soon_threadsafe(self._connection.give_back, self._command, session)
        else:
            self._thread.loop.call_soon_threadsafe(self._connection.drop, session)


def _named(files: Sequence[StagedFile]) -> list[list[object]]:
    return [[file.path, file.sha256, file.executable] for file in files]


def _plain(path: str, what: str) -> str:
    """PoolError where a path could mean something to a shell, or leave its folder."""
    if not _PLAIN.match(path) or ".." in path.split("/"):
        raise PoolError(f"{what} is a path of letters, digits, '.', '_', '-' and '/' only, and has no '..' in it")
    return path
