"""The pool of this machine: a folder for each attempt, and a launcher that outlives labsite.

`<root>/runs/<workspace>/<key>/` is the run folder, `<root>/uids/` the claimed user ids. The truth is always read from the folder,
never from a process object, since the next observer is another process.
"""

from __future__ import annotations

import math
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from runs.pools import folder as files
from runs.pools import waiting
from runs.pools.base import (
    JSON,
    READABLE,
    SAMPLES,
    Exit,
    NoAnswer,
    Observation,
    Order,
    OutputList,
    PoolError,
    Status,
    check_name,
    in_short,
    path_parts,
)
from runs.pools.isolation import LAUNCHER, Isolation, barrier, can_enter, demand_way
from runs.pools.listed import open_listed
from runs.pools.processes import is_alive, launched, marked, read_json, write_json
from runs.pools.staging import Owner, check_job, stage
from runs.pools.uids import UserIds

SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"
LAUNCHER_SECONDS = 30
ENDING_SECONDS = 0.2
STARTED = frozenset({"started", "exists"})


class LocalPool:
    """Attempts on this machine.

    `root`: the pool's folder, not below the repository or the store. `hidden`: folders that no run may see. `python`: the
    environment (or its `bin/python`) that runs find first on their PATH; the system's `python3` where it is None or missing.
    """

    def __init__(self, root: Path, isolation: Isolation, hidden: Sequence[Path], python: Path | None) -> None:
        self.root = Path(os.path.abspath(root))
        self.isolation = isolation
        self._runs = self.root / "runs"
        self._hidden = [Path(os.path.realpath(path)) for path in hidden]
        self._python = None if python is None else Path(os.path.abspath(python))
        self._uids = UserIds(self.root / "uids", self._is_live)

    def submit(self, order: Order) -> None:
        """Stage and start; an attempt that is there already is left alone, one that was staged and never started is started."""
        self.stage(order)
        self.start(order.workspace, order.key)

    def stage(self, order: Order) -> None:
        """Make the run folder, where there is none. Nothing starts by it."""
        folder = self._folder(order.workspace, order.key)
        if not folder.exists():
            with in_words("the run folder could not be made"):
                self._make_rooms(order.workspace)
                check_job(order.job)
                self._stage(folder, order)

    def start(self, workspace: str, key: str) -> None:
        """Start what is staged, unless it was started before."""
        folder = self._folder(workspace, key)
        if not (folder / "state" / "lock").exists():
            said = waiting.start(folder)
            if not said:  # the fence lets it be asked again
                said = self._call("run", folder)
            if said not in STARTED:
                raise PoolError(f"the attempt could not be started: {said}")

    def observe(self, workspace: str, key: str) -> Observation:
        """What the folder says; a launcher that was killed is noticed here, and what it left behind is ended here."""
        folder = self._folder(workspace, key)
        state = folder / "state"
        ended = end_in(state)
        if ended is not None:
            # Without isolation a run can write its own end. While its launcher lives so may its processes.
            if self._lives_on(state):
                return Observation(
                    Status.RUNNING, heartbeat_at=modified(state / "heartbeat"), reason="an end is written, its launcher lives"
                )
            return Observation(Status.EXITED, exit=_exit(ended), heartbeat_at=modified(state / "heartbeat"))
        lock = state_in(state / "lock")
        if lock is None:
            return self._unstarted(workspace, key, folder)
        if is_watched(lock):
            return watched(state)
        if end_in(state) is None:
            said = self._call("finish", folder, "launcher_lost")
            if said != "finished":
                return Observation(Status.UNKNOWN, heartbeat_at=modified(state / "heartbeat"), reason=f"the launcher is gone: {said}")
        return Observation(Status.EXITED, exit=_exit(end_in(state) or {}), heartbeat_at=modified(state / "heartbeat"))

    def cancel(self, workspace: str, key: str, *, grace_seconds: float) -> None:
        """Ask the launcher to end the attempt. One that has not started yet never will: its fence is taken here."""
        folder = self._folder(workspace, key)
        with in_words("the request to end could not be written"):
            if not folder.exists() and self._bar(workspace, folder):
                return
            state = folder / "state"
            if (state / "exit.json").exists() and not self._lives_on(state):
                return
            try:
                write_json(str(state / "lock"), {"launcher": None}, exclusive=True)
            except FileExistsError:
                write_json(str(state / "cancel.json"), {"grace_seconds": max(0.0, grace_seconds), "at": time.time()})
            else:
                self._conclude(folder)

    def read(self, workspace: str, key: str, name: str, *, offset: int, limit: int) -> bytes:
        """A piece of one of the four files that a run makes in its folder, or of what its launcher has measured."""
        if name not in READABLE and name != SAMPLES:
            raise PoolError("there is no such file to read")
        folder = self._folder(workspace, key)
        parts = ("state", name) if name == SAMPLES else (name,)
        return files.read_piece(folder, parts, self._owners(folder), offset=offset, limit=limit)

    def outputs(self, workspace: str, key: str) -> OutputList:
        """The regular files, and what was left out."""
        folder = self._folder(workspace, key)
        if not folder.exists():
            raise PoolError("there is no such attempt in this pool")
        return files.list_outputs(folder, self._owners(folder))

    def open_output(self, workspace: str, key: str, path: str) -> BinaryIO:
        folder = self._folder(workspace, key)
        return files.open_output(folder, path_parts(path), self._owners(folder))

    def open_path(self, path: str, *, below: Sequence[str], never: Sequence[str]) -> BinaryIO:
        return open_listed(path, below=below, never=[self.root, *self._hidden, *map(Path, never)])

    def remove(self, workspace: str, key: str) -> None:
        folder = self._folder(workspace, key)
        if not folder.exists():
            return
        if not (folder / "state" / "exit.json").exists():
            raise PoolError("the attempt has not ended; its folder stays")
        grave = folder.with_name(f".removed-{secrets.token_hex(8)}")
        with in_words("the run folder could not be removed"):
            folder.rename(grave)
            files.remove_tree(grave)

    def holds(self, workspace: str, key: str) -> bool:
        """Is there a run folder of this key, in whatever state?"""
        return self._folder(workspace, key).exists()

    def living(self, workspace: str) -> list[str]:
        """Keys of the run folders in which no end is written."""
        found = (self._runs / check_name(workspace, "a workspace")).glob("lab-*")
        return sorted(folder.name for folder in found if not (folder / "state" / "exit.json").exists())

    def tidy(self, *, older_than_seconds: float = 3600) -> int:
        """Remove what a killed labsite left half staged or half removed, and return how many folders that were."""
        old = self.leftovers(older_than_seconds=older_than_seconds)
        for path in old:
            files.remove_tree(path)
        return len(old)

    def leftovers(self, *, older_than_seconds: float) -> list[Path]:
        """What `tidy` would remove: drafts and graves in which nothing was written or removed for so long."""
        left = [path for pattern in (".staging-*", ".removed-*") for path in self._runs.glob(f"*/{pattern}")]
        return [path for path in left if _touched(path) < time.time() - older_than_seconds]

    def _folder(self, workspace: str, key: str) -> Path:
        return self._runs / check_name(workspace, "a workspace") / check_name(key, "a key")

    def _owners(self, folder: Path) -> frozenset[int]:
        """User ids whose files in the folder are the run's or the launcher's own."""
        uid = (state_in(folder / "state" / "start.json") or {}).get("uid")
        return frozenset({os.getuid(), uid} if isinstance(uid, int) else {os.getuid()})

    def _is_live(self, workspace: str, key: str) -> bool:
        folder = self._folder(workspace, key)
        return folder.exists() and not (folder / "state" / "exit.json").exists()

    def _lives_on(self, state: Path) -> bool:
        """Does the launcher live although an end is written? Between the one and the other lie milliseconds where the end is its own."""
        until = time.monotonic() + ENDING_SECONDS
        while is_watched(state_in(state / "lock") or {}):
            if time.monotonic() > until:
                return True
            time.sleep(0.01)
        return False

    def _unstarted(self, workspace: str, key: str, folder: Path) -> Observation:
        if folder.exists():
            return Observation(Status.PENDING, reason="staged, not started")
        if not self.root.is_dir():
            return Observation(Status.UNKNOWN, reason=f"the pool's folder {self.root} is not there")
        uid = self._uids.of(workspace, key)
        if launched(str(folder)) or marked(str(folder), uid):
            said = self._call("gone", folder, "" if uid is None else str(uid))
            if said != "ended":
                return Observation(Status.UNKNOWN, reason=f"the run folder is gone: {said}")
        return Observation(Status.MISSING, reason="there is no such attempt in this pool")

    def _make_rooms(self, workspace: str) -> None:
        """The folders around an attempt: its user may pass through, and list nothing."""
        passing = 0o711 if self.isolation == Isolation.USER else 0o700
        for path in (self.root, self._runs, self._runs / workspace):
            try:
                path.mkdir(mode=0o700, parents=path == self.root)
            except FileExistsError:
                # Another pool of the same root, without users of its own, may have made it for itself alone.
                if path == self.root or passing & ~path.stat().st_mode == 0:
                    continue
            os.chmod(path, passing)

    def _stage(self, folder: Path, order: Order) -> None:
        uid, claim = None, None
        start: dict[str, JSON] = {"isolation": self.isolation.value, "uid": None, "claim": None, **self._view(folder)}
        if self.isolation == Isolation.USER:
            demand_way(folder)
            uid, claim = self._uids.claim(order.workspace, order.key)
            start.update({"uid": uid, "claim": str(claim)})
        draft = folder.with_name(f".staging-{secrets.token_hex(8)}")
        draft.mkdir(mode=0o700)
        try:
            stage(draft, order, Owner(uid), start)
            draft.rename(folder)
        except BaseException as error:
            files.remove_tree(draft)
            if claim is not None:
                claim.unlink(missing_ok=True)
            # Another process staged the same attempt first: the fence decides who starts it.
            if not (isinstance(error, OSError) and folder.exists()):
                raise

    def _view(self, folder: Path) -> dict[str, JSON]:
        """What of the file system the run sees: PATH, folders to hide, folders to show again below them."""
        interpreter = self._interpreter()
        path = SYSTEM_PATH if interpreter is None else f"{interpreter.parent}:{SYSTEM_PATH}"
        mounts = self.isolation != Isolation.NONE and can_enter(self.isolation)
        if self.isolation == Isolation.NAMESPACE and not mounts:
            raise PoolError("this kernel does not let labsite make user namespaces")
        hide, show = {self.root, *self._hidden}, {folder}
        if self.isolation == Isolation.NAMESPACE:
            hide.add(Path.home())
        if interpreter is not None:
            places = {interpreter.parent.parent, Path(os.path.realpath(interpreter)).parent.parent}
            blocked = {found for place in places if (found := barrier(place / "bin")) is not None}
            if blocked and self.isolation == Isolation.USER:
                if not mounts:
                    raise PoolError(f"{min(blocked)} does not let other users through to the pool's Python; make it from a Python outside")
                hide |= blocked
            # Only what is covered must be shown again: showing more could uncover what lies below it.
            show |= {place for place in places if any(covered in (place, *place.parents) for covered in hide)}
        return {"mounts": mounts, "path": path, "hide": sorted(map(str, hide)), "show": sorted(map(str, show))}

    def _interpreter(self) -> Path | None:
        if self._python is None:
            return None
        found = self._python / "bin" / "python" if self._python.is_dir() else self._python
        return found if found.exists() else None

    def _bar(self, workspace: str, folder: Path) -> bool:
        """Leave a folder that says `cancelled` under a key that was never staged; False where somebody staged it meanwhile."""
        self._make_rooms(workspace)
        draft = folder.with_name(f".staging-{secrets.token_hex(8)}")
        for path in (draft, draft / "state"):
            path.mkdir(mode=0o700)
        write_json(str(draft / "state" / "lock"), {"launcher": None})
        self._conclude(draft)
        try:
            draft.rename(folder)
        except OSError:
            files.remove_tree(draft)
            return False
        return True

    def _conclude(self, folder: Path, reason: str = "cancelled") -> None:
        """Write the end of an attempt that never started; its fence is ours."""
        start = state_in(folder / "state" / "start.json") or {}
        if (folder / "secrets").is_dir():
            files.remove_tree(folder / "secrets")
        now = time.time()
        outcome = {"code": None, "signal": None, "started_at": now, "ended_at": now, "reason": reason}
        write_json(str(folder / "state" / "exit.json"), {**outcome, "peak_memory_bytes": None, "cpu_seconds": None, "samples": []})
        if start.get("claim"):
            Path(str(start["claim"])).unlink(missing_ok=True)

    def _call(self, what: str, folder: Path, *more: str) -> str:
        call = [sys.executable, "-I", "-S", "-E", str(LAUNCHER), what, str(folder), *more]
        try:
            done = subprocess.run(  # noqa: S603 -- our own script, a list
                call,
                env={},
                cwd="/",
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=LAUNCHER_SECONDS,
                check=False,
                start_new_session=True,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise NoAnswer("the launcher did not answer") from error
        return done.stdout.decode(errors="replace") or "the launcher died"


@contextmanager
def in_words(what: str) -> Iterator[None]:
    """An error of the file system (full disk, no right) as a PoolError, NoAnswer where it passes."""
    try:
        yield
    except OSError as error:
        raise in_short(what, error) from error


def is_watched(lock: dict[str, object]) -> bool:
    """Does the launcher live that has taken the fence? One on another machine cannot be seen from here."""
    launcher = lock.get("launcher")
    return isinstance(launcher, dict) and is_alive(launcher)


def watched(state: Path) -> Observation:
    """What the folder says while its launcher lives."""
    status = Status.RUNNING if (state / "pid.json").exists() else Status.PENDING
    return Observation(status, heartbeat_at=modified(state / "heartbeat"))


def state_in(path: Path) -> dict[str, object] | None:
    """What a small file of labsite's says, None where it is not there. PoolError where it cannot be read."""
    try:
        return read_json(str(path))
    except ValueError as error:
        raise PoolError(f"state/{path.name} of the run folder cannot be read") from error


def end_in(state: Path) -> dict[str, object] | None:
    """The end that the folder of a state holds, None as long as it has none. PoolError where it cannot be read."""
    return state_in(state / "exit.json")


def modified(path: Path) -> float | None:
    """When a file was last written, seconds UTC; None where it is not there."""
    try:
        return path.stat().st_mtime
    except OSError:
        return None


def _touched(folder: Path) -> float:
    """When anything in the folder was last written, made or removed: a long copy is no leftover. What a run wrote may bear any date of its
    making, and links; when that was written down is the kernel's to say."""
    found = [0.0]
    for inside, _, names in os.walk(folder):
        for place in (inside, *(f"{inside}/{name}" for name in names)):
            with suppress(OSError):
                seen = os.lstat(place)
                found.append(min(seen.st_mtime, seen.st_ctime))
    return max(found)


def _exit(found: dict[str, object]) -> Exit:
    def number(name: str) -> float | None:
        value = found.get(name)
        return value if isinstance(value, (int, float)) and math.isfinite(value) else None

    def whole(name: str) -> int | None:
        value = number(name)
        return None if value is None else int(value)

    times = {"started_at": number("started_at") or 0.0, "ended_at": number("ended_at") or 0.0}
    peak, used = whole("peak_memory_bytes"), number("cpu_seconds")
    return Exit(whole("code"), whole("signal"), **times, reason=str(found.get("reason", "exit")), peak_memory_bytes=peak, cpu_seconds=used)
