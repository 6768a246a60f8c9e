"""The launcher that waits for starts: what it forks is a launcher like any other, and lives without it."""

import array
import errno
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from runs.pools import waiting
from runs.pools.base import Order, PoolError, Status
from runs.pools.isolation import Isolation
from runs.pools.local import LocalPool
from runs.pools.processes import is_alive, launched, stat_fields
from runs.pools.waiting import WaitingLauncher
from tests.runs.pools.laboratory import REPOSITORY, Laboratory, alive, wait_for

LIVES = "import time; print('up', flush=True); time.sleep(60)"


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Laboratory]:
    waiting.end()  # that of the tests before
    own = WaitingLauncher()
    monkeypatch.setattr(waiting, "start", own.start)
    (tmp_path / "store").mkdir()
    spec = {"root": str(tmp_path / "runs"), "hidden": str(tmp_path / "hidden"), "isolation": Isolation.NONE.value}
    lab = Laboratory(LocalPool(tmp_path / "runs", Isolation.NONE, [tmp_path / "hidden"], None), tmp_path / "store", spec)
    yield lab
    lab.clear()
    own.end()


def waits_below(parent: int) -> list[int]:
    """Waiting launchers that a process has started."""
    found = [(pid, stat_fields(pid)) for pid in alive("wait\0" + waiting.ROOM)]
    return [pid for pid, fields in found if fields and int(fields[1]) == parent]


def launcher_of(lab: Laboratory, order: Order) -> int:
    known = json.loads((lab.folder(order) / "state/pid.json").read_text())["launcher"]
    assert is_alive(known)
    return int(known["pid"])


def code_of(lab: Laboratory, order: Order) -> int | None:
    seen = lab.ended(order).exit
    assert seen is not None
    return seen.code


def test_what_it_forks_is_found_by_its_folder_and_is_nobodys_child(lab: Laboratory) -> None:
    first, second = lab.start(lab.order(LIVES)), lab.start(lab.order(LIVES))
    [waits] = waits_below(os.getpid())
    for order in (first, second):
        launcher = launcher_of(lab, order)
        assert launched(str(lab.folder(order))) == [launcher]
        fields = stat_fields(launcher)
        assert fields is not None
        parent, session = int(fields[1]), int(fields[3])
        assert parent not in (os.getpid(), waits)
        assert session == launcher
        assert Path(f"/proc/{launcher}/environ").read_bytes() == b""


def test_a_run_lives_without_it_and_the_next_one_starts(lab: Laboratory) -> None:
    order = lab.start(lab.order(LIVES))
    lab.said(order, "up")
    [waits] = waits_below(os.getpid())
    os.kill(waits, signal.SIGKILL)
    lab.run("pass")  # by a launcher of its own
    assert lab.look(order).status == Status.RUNNING
    lab.run("pass")
    assert waits_below(os.getpid()) not in ([], [waits])
    lab.pool.cancel(order.workspace, order.key, grace_seconds=0)
    assert lab.ended(order).exit is not None


def test_it_ends_with_the_process_that_asks(lab: Laboratory) -> None:
    """Killed, so that it could say nothing; what it started goes on to its end."""
    order = lab.order("import time; print('up', flush=True); time.sleep(2)")
    files = [[one.path, str(one.source), one.sha256] for one in order.code]
    call = {**lab.spec, "key": order.key, "workspace": order.workspace, "job": order.job, "code": files, "then": "die"}
    before = set(alive("wait\0" + waiting.ROOM))
    done = subprocess.run([sys.executable, "-m", "tests.runs.pools.submitter", json.dumps(call)], cwd=REPOSITORY, check=False)
    assert done.returncode == -signal.SIGKILL
    wait_for(lambda: True if set(alive("wait\0" + waiting.ROOM)) <= before else None, "the end of the waiting launcher")
    lab.said(order, "up")
    assert code_of(lab, order) == 0


def test_a_folder_too_long_for_its_command_line_has_a_launcher_of_its_own(lab: Laboratory, tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*["d" * 200] * 6)
    lab.pool = LocalPool(deep, Isolation.NONE, [], None)
    lab.spec["root"] = str(deep)
    assert code_of(lab, lab.start(lab.order("pass"))) == 0


def test_without_a_pipe_a_run_has_a_launcher_of_its_own(lab: Laboratory, monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left() -> tuple[int, int]:
        raise OSError(errno.EMFILE, "Too many open files")

    order = lab.order("pass")
    assert isinstance(lab.pool, LocalPool)
    lab.pool.stage(order)
    with monkeypatch.context() as patched:
        patched.setattr(os, "pipe", none_left)
        assert waiting.start(lab.folder(order)) == ""
    assert code_of(lab, lab.start(order)) == 0


def test_a_reason_that_a_launcher_gives_is_heard(lab: Laboratory) -> None:
    order = lab.order("pass")
    assert isinstance(lab.pool, LocalPool)
    lab.pool.stage(order)
    (lab.folder(order) / "state/start.json").unlink()
    with pytest.raises(PoolError, match="could not be started: the folder is not staged"):
        lab.pool.start(order.workspace, order.key)


def test_a_run_has_no_door_to_it(lab: Laboratory) -> None:
    """Three streams, and what Python has open while it looks."""
    order, _ = lab.run("import os; print(sorted(os.listdir('/proc/self/fd')))")
    assert lab.log(order).strip() == "['0', '1', '2', '3']"


def test_one_that_is_silent_is_said_and_makes_way(lab: Laboratory, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it was asked for may run, so that nobody is asked beside it; the fence lets the start be asked again."""
    lab.run("pass")
    [waits] = waits_below(os.getpid())
    monkeypatch.setattr(waiting, "ANSWER_SECONDS", 0.3)
    os.kill(waits, signal.SIGSTOP)
    order = lab.order("pass")
    with pytest.raises(PoolError, match="did not answer"):
        lab.start(order)
    assert waits_below(os.getpid()) == []
    monkeypatch.setattr(waiting, "ANSWER_SECONDS", 30.0)
    lab.start(order)
    assert code_of(lab, order) == 0


def test_a_run_whose_start_nobody_waits_for_any_more_is_watched(lab: Laboratory) -> None:
    """As where the process that asked was killed before it had its answer."""
    order = lab.order("print('up', flush=True)")
    assert isinstance(lab.pool, LocalPool)
    lab.pool.stage(order)
    door, process = waiting._launcher()
    reader, writer = os.pipe()
    os.close(reader)
    with door:
        door.sendmsg([os.fsencode(lab.folder(order))], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [writer]))])
    os.close(writer)
    assert process.wait(10) == 0
    wait_for(lambda: (lab.folder(order) / "state/lock").exists() or None, "the start")
    assert code_of(lab, order) == 0
