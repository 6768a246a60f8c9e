"""A launcher on another machine that beats no more: is it dead, or does the file system stand still that carries its beats? By a clock of our own."""

import json
import os
import uuid
from collections.abc import Mapping
from pathlib import Path

import pytest

from runs.pools import scheduled
from runs.pools.base import JSON, Observation, Status
from runs.pools.isolation import Isolation
from runs.pools.processes import identity, is_alive
from runs.pools.scheduled import ScheduledPool
from runs.pools.scheduler import Launch, Placed
from tests.runs.pools.laboratory import Laboratory

STARTED = 1_800_000_000.0
RUNNING = Placed(Status.RUNNING, "Engine says RUNNING", "job 7")


class Engine:
    """Says the same of every job, and keeps what it was asked to stop."""

    title = "Engine"

    def __init__(self) -> None:
        self.says, self.stopped = RUNNING, list[str]()

    def submit(self, launch: Launch) -> None:
        raise AssertionError(f"{launch.name} was started already")

    def look(self, name: str, *, fresh: bool = False) -> Placed:
        return self.says

    def stop(self, name: str) -> None:
        self.stopped.append(name)

    def names(self) -> list[str]:
        return []

    def probe(self) -> Mapping[str, JSON]:
        return {}


class Far:
    """An attempt whose launcher took the fence on another machine. Seconds count from its start."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.engine, self.now = Engine(), STARTED
        monkeypatch.setattr(scheduled, "_clock", lambda state: self.now)
        self.pool = ScheduledPool(folder / "pool", Isolation.NONE, [], None, self.engine)
        lab = Laboratory(self.pool, folder, {"root": str(folder / "pool")})
        self.order = lab.order("pass")
        self.pool.stage(self.order)
        self.state = lab.folder(self.order) / "state"
        self.taken_by({"pid": 7, "start_time": 7, "boot_id": str(uuid.uuid4())})
        self.beat(0)

    def taken_by(self, launcher: Mapping[str, object]) -> None:
        for name in ("lock", "pid.json"):
            (self.state / name).write_text(json.dumps({"launcher": launcher}))

    def beat(self, at: float) -> None:
        os.utime(self.state / "heartbeat", (STARTED + at, STARTED + at))

    def look(self, at: float) -> Observation:
        self.now = STARTED + at
        return self.pool.observe(self.order.workspace, self.order.key)


@pytest.fixture
def far(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Far:
    return Far(tmp_path, monkeypatch)


@pytest.mark.parametrize("stall", [20, 600, 86_400])
def test_after_a_stall_of_the_file_system_however_long_nobody_is_stopped(far: Far, stall: int) -> None:
    """Whoever looks then finds every heartbeat as old as the stall was long."""
    assert far.look(1).status == Status.RUNNING
    seen = far.look(stall)
    assert (seen.status, seen.reason) == (Status.UNKNOWN, f"its launcher has been silent for {stall} s; Engine says RUNNING")
    far.beat(stall + 1)
    assert far.look(stall + 2).status == Status.RUNNING
    assert far.look(3 * stall).status == Status.UNKNOWN, "the next stall is another one"
    assert far.engine.stopped == []
    assert not (far.state / "stopped").exists()


def test_looks_that_are_far_apart_have_not_seen_a_launcher_silent(far: Far) -> None:
    """Labsite stood still itself, or waited for the file system, and what beat between its looks it does not know."""
    for at in range(100, 1000, 100):
        assert far.look(at).status == Status.UNKNOWN
    assert far.engine.stopped == []


def test_a_launcher_that_stays_silent_is_stopped(far: Far) -> None:
    """Nobody holds the limits of what may run there."""
    for at in range(20, 140, 10):
        assert "Engine says RUNNING" in far.look(at).reason
    assert far.engine.stopped == []
    seen = far.look(140)
    assert (seen.status, seen.reason) == (Status.UNKNOWN, "its launcher has been silent for 140 s; Engine is asked to stop job 7")
    assert far.engine.stopped == [far.order.key]
    far.engine.says = Placed(Status.EXITED, "Engine says that it ended", "job 7", "engine_cancelled")
    ended = far.look(141)
    assert ended.exit is not None
    assert (ended.status, ended.exit.reason) == (Status.EXITED, "launcher_lost"), "nobody there asked for it"


def test_a_launcher_that_its_engine_forgot_is_lost_only_once_it_stays_silent(far: Far) -> None:
    """A head of Ray that was replaced knows no job, and goes on with one: lost too early, it would run twice."""
    far.engine.says = Placed(Status.MISSING, "Engine knows no such job")
    for at in range(20, 140, 10):
        assert (far.look(at).status, far.look(at).exit) == (Status.UNKNOWN, None)
    ended = far.look(140)
    assert ended.exit is not None
    assert (ended.status, ended.exit.reason) == (Status.EXITED, "launcher_lost")


def test_the_word_of_the_engine_that_it_ended_is_enough(far: Far) -> None:
    far.engine.says = Placed(Status.EXITED, "Engine says NODE_FAIL", "job 7", "launcher_lost")
    ended = far.look(20)
    assert ended.exit is not None
    assert (ended.status, ended.exit.reason) == (Status.EXITED, "launcher_lost")


def test_a_launcher_in_another_container_of_this_machine_is_not_looked_for_here(far: Far) -> None:
    """It has our boot and numbers of its own: that nobody lives here under its number says nothing."""
    launcher = {**(identity(os.getpid()) or {}), "start_time": 7, "pid_namespace": "pid:[1]"}
    far.taken_by(launcher)
    assert far.look(1).status == Status.RUNNING
    assert (far.look(20).status, far.look(30).status, far.engine.stopped) == (Status.UNKNOWN, Status.UNKNOWN, [])
    far.beat(31)
    assert far.look(32).status == Status.RUNNING


def test_nothing_is_stopped_whose_heart_has_just_beaten(far: Far) -> None:
    """A launcher of before, which may be in a container, names no namespace and is looked for here."""
    launcher = {**(identity(os.getpid()) or {}), "start_time": 7}
    del launcher["pid_namespace"]
    far.taken_by(launcher)
    assert (far.look(1).status, far.engine.stopped) == (Status.UNKNOWN, [])
    far.look(20)
    assert far.engine.stopped == [far.order.key], "it is dead, and nobody holds the limits of what it left"


def test_who_lives_here_is_known_by_whose_numbers_are_meant() -> None:
    here = identity(os.getpid()) or {}
    before = {name: value for name, value in here.items() if name != "pid_namespace"}
    assert [is_alive(one) for one in (here, before, {**here, "pid_namespace": "pid:[1]"}, {**here, "start_time": 7})] == [
        True,
        True,
        False,
        False,
    ]
