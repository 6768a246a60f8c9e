"""Attempts that an engine such as Slurm or Ray starts: the run folder of a LocalPool, seen by every node; only who starts the launcher differs.

The folder's word is heard first (an end, a living launcher, a fresh heartbeat), then the engine's. A launcher may be on another machine, where
no process can be looked at; then its heartbeat counts, by the clock of the file system that both see.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from runs.pools.base import NoAnswer, Observation, PoolError, Status
from runs.pools.isolation import LAUNCHER, Isolation
from runs.pools.local import LocalPool, end_in, in_words, is_watched, modified, state_in, watched
from runs.pools.processes import is_here, write_json
from runs.pools.scheduler import Launch, Placed, Scheduler

BEAT_SECONDS = 2.0  # a heartbeat comes every second
FRESH_SECONDS = 15.0  # a shared file system may show it late
STILL_SECONDS = 120.0  # a file system that stands still keeps every launcher from beating; so long a silence is the launcher's own
LOOKED_SECONDS = 60.0  # looks further apart than this have not seen what was between them
SAYING_SECONDS = 30.0  # after an end, the engine has so long to say how it came to it
STOP_SECONDS = 10.0  # after the grace, the engine is asked to end what its launcher has not ended


class ScheduledPool(LocalPool):
    """A LocalPool whose launchers are started by `scheduler`.

    `launcher`: the script as the engine's nodes see it. `interpreter`: what runs it there, Python 3.8 or newer.
    """

    def __init__(
        self,
        root: Path,
        isolation: Isolation,
        hidden: Sequence[Path],
        python: Path | None,
        scheduler: Scheduler,
        *,
        launcher: Path = LAUNCHER,
        interpreter: str = "python3",
    ) -> None:
        super().__init__(root, isolation, hidden, python)
        self.scheduler = scheduler
        self._argv = (interpreter, "-I", "-S", "-E", "-X", "utf8", str(launcher), "hold")

    def start(self, workspace: str, key: str) -> None:
        """Hand what is staged to the engine, unless it has it. Where the engine is silent, the next start looks first and asks again."""
        folder = self._folder(workspace, key)
        if (folder / "state" / "lock").exists():
            return
        job = state_in(folder / "job.json")
        if job is None:
            raise PoolError("the attempt could not be started: the folder is not staged")
        limits, resources = _numbers(job.get("limits")), _numbers(job.get("resources"))
        wall_seconds = limits.get("wall_seconds", 0) + limits.get("grace_seconds", 0)
        memory = limits.get("memory_bytes")
        launch = Launch(
            key,
            [*self._argv, str(folder)],
            folder,
            slots=max(1, int(resources.get("slots", 1))),
            gpus=int(resources.get("gpus", 0)),
            wall_seconds=int(wall_seconds) + 1,
            memory_bytes=None if memory is None else int(memory),
        )
        with _one_at_a_time(folder), contextlib.suppress(NoAnswer):
            self.scheduler.submit(launch)

    def observe(self, workspace: str, key: str) -> Observation:
        """What the folder says, and where it says nothing certain, what the engine says."""
        folder = self._folder(workspace, key)
        state = folder / "state"
        if end_in(state) is not None:
            if _beats_on(state):
                return Observation(
                    Status.RUNNING, heartbeat_at=modified(state / "heartbeat"), reason="an end is written, its launcher lives"
                )
            return self._explained(key, state, super().observe(workspace, key))
        lock = state_in(state / "lock")
        if lock is None:
            return self._waiting(workspace, key, folder)
        if is_watched(lock):
            return watched(state)  # and does not look again: an end that is written by now is explained by the next look
        return self._unwatched(workspace, key, folder, lock)

    def cancel(self, workspace: str, key: str, *, grace_seconds: float) -> None:
        """Bar the start of one that waits, and take it out of the engine's queue. One that runs ends by itself; asked again long after its
        grace, the engine ends it."""
        state = self._folder(workspace, key) / "state"
        asked = state_in(state / "cancel.json")
        if asked is None and _beats_on(state):
            with in_words("the request to end could not be written"):
                write_json(str(state / "cancel.json"), {"grace_seconds": max(0.0, grace_seconds), "at": time.time()})
        elif asked is None:
            super().cancel(workspace, key, grace_seconds=grace_seconds)
            if end_in(state) is not None:
                with contextlib.suppress(PoolError):  # what the engine still has of it can start nothing any more
                    self.scheduler.stop(key)
        elif end_in(state) is None:
            since = _numbers(asked)
            if time.time() - since.get("at", 0) > since.get("grace_seconds", 0) + STOP_SECONDS:
                self.scheduler.stop(key)

    def living(self, workspace: str) -> list[str]:
        """Those of a folder without an end, and whatever the engine has waiting or running, of whichever installation and workspace."""
        return sorted({*super().living(workspace), *self.scheduler.names()})

    def _waiting(self, workspace: str, key: str, folder: Path) -> Observation:
        """No launcher has taken the fence."""
        found = self._unstarted(workspace, key, folder)
        if found.status == Status.UNKNOWN:
            return found
        placed = self.scheduler.look(key)
        if placed.status == Status.UNKNOWN:
            return Observation(Status.UNKNOWN, reason=placed.reason)
        if found.status == Status.MISSING:
            if placed.status in (Status.PENDING, Status.RUNNING) and not placed.is_ending:
                self.scheduler.stop(key)
                return Observation(
                    Status.UNKNOWN, reason=f"the run folder is gone; {self.scheduler.title} is asked to stop {placed.native}"
                )
            return found
        if placed.status == Status.MISSING:
            return Observation(Status.PENDING, reason=f"staged, and not with {self.scheduler.title} yet")
        if placed.status != Status.EXITED:
            return Observation(Status.PENDING, reason=placed.reason, native=placed.native or key)
        try:
            write_json(str(folder / "state" / "lock"), {"launcher": None}, exclusive=True)
        except FileExistsError:
            return self.observe(workspace, key)  # its launcher was quick, and what it has left says more
        self._conclude(folder, placed.ended_as)
        return replace(super().observe(workspace, key), reason=f"{placed.reason}{_last_words(folder)}")

    def _unwatched(self, workspace: str, key: str, folder: Path, lock: dict[str, object]) -> Observation:
        """The fence is taken by a launcher that cannot be seen from here, or that is dead."""
        state = folder / "state"
        launcher = lock.get("launcher")
        is_elsewhere = isinstance(launcher, dict) and not is_here(launcher)
        beat = modified(state / "heartbeat")
        silent = FRESH_SECONDS + 1 if beat is None else _clock(state) - beat
        is_fresh = silent < FRESH_SECONDS
        if is_elsewhere and is_fresh:
            seen = watched(state)
            return replace(seen, native="" if seen.status == Status.RUNNING else key)
        # Barred where it names no launcher, by a process that died before it wrote the end. A launcher that died just now may be younger than
        # what the engine was last heard to say.
        placed = self.scheduler.look(key, fresh=not is_elsewhere) if launcher else Placed(Status.EXITED)
        if end_in(state) is not None:
            return self.observe(workspace, key)  # written meanwhile, by a launcher that had died when it was looked for
        if placed.status == Status.UNKNOWN:
            return Observation(Status.UNKNOWN, heartbeat_at=beat, reason=placed.reason)
        if placed.status != Status.EXITED and (_still(state, beat) < STILL_SECONDS if is_elsewhere else is_fresh):
            # Of one that is not seen here its last beat is the better witness: nothing that may live is stopped.
            words = f"its launcher has been silent for {silent:.0f} s; {placed.reason or self.scheduler.title}"
            return Observation(Status.UNKNOWN, heartbeat_at=beat, reason=words)
        if placed.status in (Status.PENDING, Status.RUNNING):
            # Nobody holds the limits of what may run there. A job that was put back into the engine's queue could not start again either.
            with in_words("the request to stop could not be noted"):
                (state / "stopped").touch(mode=0o600)
            self.scheduler.stop(key)
            words = f"its launcher has been silent for {silent:.0f} s; {self.scheduler.title} is asked to stop {placed.native}"
            return Observation(Status.UNKNOWN, heartbeat_at=beat, reason=words)
        self._finish(folder, _reason(state, placed))
        return self._explained(key, state, super().observe(workspace, key), placed)

    def _finish(self, folder: Path, reason: str) -> None:
        said = self._call("finish", folder, reason)
        if said not in ("finished", "alive"):
            raise PoolError(f"the launcher is gone: {said}")

    def _explained(self, key: str, state: Path, seen: Observation, placed: Placed | None = None) -> Observation:
        """An end that nobody here asked for, with what the engine says of it: told to stop by the engine, a launcher cannot know by whom."""
        if seen.exit is None:
            return seen
        asked = (state / "cancel.json").exists() or (state / "stopped").exists()
        outside = seen.exit.reason == "cancelled" and seen.exit.has_run and not asked
        if placed is None and outside:
            placed = self.scheduler.look(key, fresh=True)  # what was heard before the end cannot explain it
            if placed.status == Status.PENDING:
                self.scheduler.stop(key)  # put back into the engine's queue, where it could only find its fence taken
            elif (
                placed.status in (Status.RUNNING, Status.UNKNOWN) and _clock(state) - (modified(state / "exit.json") or 0) < SAYING_SECONDS
            ):
                return Observation(
                    Status.RUNNING, heartbeat_at=seen.heartbeat_at, reason=f"it has ended; {self.scheduler.title} has yet to say why"
                )
        if placed is None or placed.status != Status.EXITED:
            return seen
        reason = placed.ended_as if outside and placed.ended_as in ("engine_cancelled", "wall_limit") else seen.exit.reason
        return replace(seen, exit=replace(seen.exit, reason=reason), reason=placed.reason)


def _reason(state: Path, placed: Placed) -> str:
    """Why an attempt ended whose launcher did not live to say it: as it was asked by us, else as the engine has it."""
    if placed.ended_as == "engine_cancelled" and (state / "cancel.json").exists():
        return "cancelled"
    by_us = placed.ended_as == "engine_cancelled" and (state / "stopped").exists()
    return "launcher_lost" if by_us or placed.ended_as == "engine_failed" else placed.ended_as


@contextlib.contextmanager
def _one_at_a_time(folder: Path) -> Iterator[None]:
    """Look up and ask without another process between the two. Where locks do not work, the fence still lets one start only."""
    number = os.open(folder / "state", os.O_RDONLY | os.O_DIRECTORY)
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(number, fcntl.LOCK_EX)
        yield
    finally:
        os.close(number)


def _beats_on(state: Path) -> bool:
    """Does a launcher on another machine live although an end is written? Without isolation a run can write its own."""
    beat, end = modified(state / "heartbeat"), modified(state / "exit.json")
    return beat is not None and end is not None and beat > end + BEAT_SECONDS and _clock(state) - beat < FRESH_SECONDS


def _still(state: Path, beat: float | None) -> float:
    """For how many seconds looks, none long after the one before, have found no other beat than this. One old beat says nothing: where the file
    system or labsite stood still, nobody looked either, and the first look afterwards comes before the next beat."""
    now, noted = _clock(state), _numbers(state_in(state / "silent"))
    goes_on = noted.get("beat") == (beat or 0.0) and 0 <= now - noted.get("looked", 0.0) <= LOOKED_SECONDS
    since = noted.get("since", now) if goes_on else now
    with in_words("the silence of its launcher could not be noted"):
        write_json(str(state / "silent"), {"beat": beat or 0.0, "since": since, "looked": now})
    return now - since


def _last_words(folder: Path) -> str:
    """What the engine kept of a launcher that did not start, such as that there is no python3; empty where it kept nothing."""
    with contextlib.suppress(OSError):
        lines = (folder / "state" / "batch.log").read_text(errors="replace")[-1000:].splitlines()
        return f"; it said: {lines[-1][:160]}" if lines else ""
    return ""


def _clock(state: Path) -> float:
    """Now, by the file system that the heartbeat is written to."""
    path = state / "clock"
    try:
        path.touch(mode=0o600)
        os.utime(path)
        return path.stat().st_mtime
    except OSError:
        return time.time()


def _numbers(found: object) -> dict[str, float]:
    return {name: value for name, value in found.items() if isinstance(value, (int, float))} if isinstance(found, dict) else {}
