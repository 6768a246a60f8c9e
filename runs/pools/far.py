"""The far side of a pool on another host: a LocalPool there, or a ScheduledPool, asked through stdin, a line of JSON for each question and
each answer.

A script of the standard library (Python 3.8); it travels with the launcher, lies at `<root>/launcher/<hash>/runs/pools/` and knows its root
from that. It ends when its connection does. Files come in by `keep`, into a store by hash, so that what many attempts share is sent once.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import pwd
import select
import shutil
import struct
import sys
import time
from pathlib import Path
from typing import Any, BinaryIO, Dict, Iterable

sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from runs.pools.base import NoAnswer, NotPlain, Order, PoolError, StagedFile, StagedInput, in_short, path_parts
from runs.pools.isolation import Isolation, available
from runs.pools.local import LocalPool
from runs.pools.scheduled import ScheduledPool
from runs.pools.schedulers import scheduler_of
from runs.pools.staging import check_job

GREETING = b"labsite far side 1\n"
FRAME = struct.Struct(">I")
BROKEN = 0xFFFFFFFF  # in place of a frame's length: the file could not be read on
FRAMES_AHEAD = 8
CHUNK_BYTES = 1 << 18
MAX_READ = 1 << 24
UNUSED_SECONDS = 7 * 86_400.0

Asked = Dict[str, Any]


class Store:
    """Files by their hash below one folder, 0600. They are hashed again whenever they are staged, so what lies here is not trusted."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def path(self, sha256: str) -> Path:
        if len(sha256) != 64 or not set(sha256) <= set("0123456789abcdef"):
            raise PoolError("a file's hash is 64 hexadecimal digits")
        return self._folder / sha256

    def missing(self, files: Iterable[StagedFile]) -> list[str]:
        """Hashes that must be sent first, each once; those that are here count as used now."""
        found = []
        for sha256 in dict.fromkeys(file.sha256 for file in files):
            try:
                os.utime(self.path(sha256))
            except FileNotFoundError:
                found.append(sha256)
        return found

    def keep(self, name: str, sha256: str, size: int, source: BinaryIO) -> None:
        """Take `size` bytes from `source`; PoolError where they are not what was promised, EOFError where they do not come."""
        target = self.path(sha256)
        self._folder.mkdir(mode=0o700, exist_ok=True)
        draft = self._folder / f".new-{os.urandom(8).hex()}"
        digest = hashlib.sha256()
        try:
            with open(draft, "xb", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
                while size > 0:
                    chunk = source.read(min(size, CHUNK_BYTES))
                    if not chunk:
                        raise EOFError
                    size -= len(chunk)
                    digest.update(chunk)
                    file.write(chunk)
            if digest.hexdigest() != sha256:
                raise PoolError(f"{name} does not have the hash that was promised (sha256 {sha256[:12]}…)")
            draft.rename(target)
        finally:
            if draft.exists():
                draft.unlink()

    def clean(self, files: Iterable[StagedFile]) -> None:
        """Drop files that are not what their names say, so that they are sent again."""
        for file in files:
            digest = hashlib.sha256()
            with contextlib.suppress(FileNotFoundError), open(file.source, "rb") as source:
                for chunk in iter(lambda: source.read(CHUNK_BYTES), b""):
                    digest.update(chunk)
                if digest.hexdigest() != file.sha256:
                    file.source.unlink()

    def tidy(self, older_than_seconds: float) -> int:
        """Remove what no attempt has used for a week, and drafts that a killed process left; how many files that were."""
        now, removed = time.time(), 0
        for path in self._folder.glob("*") if self._folder.is_dir() else ():
            unused = older_than_seconds if path.name.startswith(".new-") else UNUSED_SECONDS
            if path.stat().st_mtime < now - unused:
                path.unlink()
                removed += 1
        return removed


class FarSide:
    """Answers the questions of one connection."""

    def __init__(self, root: Path, source: BinaryIO, target: BinaryIO) -> None:
        self._root, self._source, self._target = root, source, target
        self._store = Store(root / "store")
        self._number: object = None  # of the question, which its answer says again

    def serve(self) -> None:
        """Until the other side is gone. A file that stops coming ends it as well."""
        self._target.write(GREETING)
        self._target.flush()
        for line in self._source:
            asked = json.loads(line.decode())
            self._number = asked.get("number")
            try:
                self._answer(asked)
            except PoolError as error:
                self._refuse(error)
            except OSError as error:
                self._refuse(in_short("the host could not do it", error))

    def _answer(self, asked: Asked) -> None:
        pool = self._pool(asked)
        simple = {"observe": self._observe, "outputs": self._outputs, "start": self._start, "cancel": self._cancel, "remove": self._remove}
        what = asked["what"]
        if what in simple:
            self._say(simple[what](pool, asked))
        elif what == "stage":
            self._say({"need": self._stage(pool, asked)})
        elif what == "keep":
            self._keep(asked)
        elif what == "read":
            limit = min(asked["limit"], MAX_READ)
            found = pool.read(asked["workspace"], asked["key"], asked["name"], offset=asked["offset"], limit=limit)
            self._say({"bytes": len(found)}, found)
        elif what == "open":
            with pool.open_output(asked["workspace"], asked["key"], asked["path"]) as file:
                self._say({})
                self._send(file)
        elif what == "path":
            with pool.open_path(asked["path"], below=asked["below"], never=asked["never"]) as file:
                self._say({})
                self._send(file)
        elif what == "living":
            self._say({"keys": pool.living(asked["workspace"])})
        elif what == "tidy":
            seconds = asked["older_than_seconds"]
            self._say({"removed": pool.tidy(older_than_seconds=seconds) + self._store.tidy(seconds)})
        elif what == "probe":
            self._say({**self._probe(), "engine": dict(pool.scheduler.probe()) if isinstance(pool, ScheduledPool) else None})
        else:
            raise PoolError(f"the far side does not know {what!a}")

    def _pool(self, asked: Asked) -> LocalPool:
        python = asked["python"]
        hidden = [Path(one) for one in asked["hidden"]]
        place = (self._root, Isolation(asked["isolation"]), hidden, None if python is None else Path(python))
        engine = asked.get("scheduler")
        return LocalPool(*place) if engine is None else ScheduledPool(*place, scheduler_of(engine))

    def _say(self, answer: Asked, more: bytes = b"") -> None:
        self._target.write(json.dumps({**answer, "now": time.time(), "number": self._number}).encode() + b"\n" + more)
        self._target.flush()

    def _refuse(self, error: PoolError) -> None:
        self._say({"error": error.reason, "is_not_plain": isinstance(error, NotPlain), "is_no_answer": isinstance(error, NoAnswer)})

    def _observe(self, pool: LocalPool, asked: Asked) -> Asked:
        return dataclasses.asdict(pool.observe(asked["workspace"], asked["key"]))

    def _outputs(self, pool: LocalPool, asked: Asked) -> Asked:
        found = pool.outputs(asked["workspace"], asked["key"])
        return {"outputs": [[one.path, one.bytes] for one in found], "skipped": found.skipped, "left": found.left}

    def _start(self, pool: LocalPool, asked: Asked) -> Asked:
        pool.start(asked["workspace"], asked["key"])
        return {}

    def _cancel(self, pool: LocalPool, asked: Asked) -> Asked:
        pool.cancel(asked["workspace"], asked["key"], grace_seconds=asked["grace_seconds"])
        return {}

    def _remove(self, pool: LocalPool, asked: Asked) -> Asked:
        pool.remove(asked["workspace"], asked["key"])
        return {}

    def _stage(self, pool: LocalPool, asked: Asked) -> list[str]:
        """Make the run folder, or name what must be sent before."""
        order = self._order(asked)
        if pool.holds(order.workspace, order.key):
            return []
        check_job(order.job)
        files = [*order.code, *(file for one in order.inputs for file in one.files)]
        for file in files:
            path_parts(file.path)
        if need := self._store.missing(files):
            return need
        if self._is_left():
            raise PoolError("the connection has ended")  # nobody waits for it: what would be staged now might never be asked for
        try:
            pool.stage(order)
        except NoAnswer:
            raise
        except PoolError:
            self._store.clean(files)
            raise
        return []

    def _order(self, asked: Asked) -> Order:
        def files(found: list[list[Any]]) -> tuple[StagedFile, ...]:
            return tuple(StagedFile(path, self._store.path(sha256), sha256, executable) for path, sha256, executable in found)

        inputs = tuple(StagedInput(slug, files(found)) for slug, found in asked["inputs"])
        return Order(asked["key"], asked["workspace"], asked["job"], files(asked["code"]), inputs, asked["secrets"])

    def _keep(self, asked: Asked) -> None:
        """Take in files, one after the other. After the first failure the rest cannot be told apart, so this side ends."""
        try:
            for name, sha256, size in asked["files"]:
                self._store.keep(name, sha256, size, self._source)
        except EOFError:
            sys.exit(1)
        except (PoolError, OSError) as error:
            self._refuse(error if isinstance(error, PoolError) else in_short("a file could not be kept on the host", error))
            sys.exit(1)
        self._say({})

    def _is_left(self) -> bool:
        poll = select.poll()
        poll.register(self._source, select.POLLHUP | select.POLLRDHUP)
        return bool(poll.poll(0))

    def _send(self, file: BinaryIO) -> None:
        """Send frames, never more than `FRAMES_AHEAD` before the other side has taken them, for each of which it sends a byte."""
        ahead = 0
        try:
            for chunk in iter(lambda: file.read(CHUNK_BYTES), b""):
                if ahead == FRAMES_AHEAD:
                    self._wait_taken(1)
                    ahead -= 1
                self._target.write(FRAME.pack(len(chunk)) + chunk)
                self._target.flush()
                ahead += 1
        except OSError as error:
            self._target.write(FRAME.pack(BROKEN) + json.dumps({"error": error.strerror}).encode() + b"\n")
        else:
            self._target.write(FRAME.pack(0))
        self._target.flush()
        self._wait_taken(ahead)

    def _wait_taken(self, count: int) -> None:
        if len(self._source.read(count)) < count:
            sys.exit(0)  # nobody wants the rest

    def _probe(self) -> Asked:
        here = os.getuid()
        try:
            user = pwd.getpwuid(here).pw_name
        except KeyError:
            user = str(here)
        return {
            "python": sys.version.split()[0],
            "user": user,
            "isolations": [one.value for one in available(as_root=here == 0)],
            "cores": len(os.sched_getaffinity(0)),
            "memory_bytes": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
            "free_bytes": shutil.disk_usage(str(self._root)).free,
        }


if __name__ == "__main__":
    FarSide(Path(os.path.abspath(__file__)).parents[4], sys.stdin.buffer, sys.stdout.buffer).serve()
