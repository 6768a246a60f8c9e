"""The local pool: the common suite under each isolation, and what a hostile run must not reach."""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

import django_rq
import pytest
from django.conf import settings
from django.db import connection

from runs.pools.base import Order, PoolError, Status
from runs.pools.folder import remove_tree
from runs.pools.isolation import LAUNCHER, Isolation, available, can_enter, describe
from runs.pools.local import LocalPool
from runs.pools.processes import is_alive
from runs.pools.supervisor import Supervisor
from tests.runs.pools.conformance import DETACHED, Conformance
from tests.runs.pools.laboratory import REPOSITORY, Laboratory, alive, wait_for

AS_ROOT = os.getuid() == 0
CONFINED = [Isolation.USER, Isolation.NAMESPACE]

# Tries everything, prints what worked.
THIEF = """
import json, os, socket, sys
run, worked = os.environ["LABSITE_RUN_DIR"], []
def attempt(name, act):
    try:
        act()
    except OSError:
        return
    worked.append(name)
for path in sys.argv[1:]:
    attempt("see " + path, lambda: os.listdir(path) if os.path.isdir(path) and os.listdir(path) else open(path).read())
names = "state/exit.json state/cancel.json state/lock job.json code/main.py code/new inputs/medqa/table.csv stdout.log"
for name in names.split():
    attempt("write " + name, lambda: open(os.path.join(run, name), "a").write("x"))
    attempt("remove " + name, lambda: os.unlink(os.path.join(run, name)))
for name in ("state", "code", "inputs", "job.json", "stdout.log"):
    attempt("move " + name, lambda: os.rename(os.path.join(run, name), os.path.join(run, name + ".mine")))
attempt("chmod folder", lambda: os.chmod(os.path.join(run, "code"), 0o777))
attempt("see state", lambda: open(os.path.join(run, "state", "start.json")).read())
for pid in os.listdir("/proc"):
    if pid.isdigit() and int(pid) != os.getpid():
        attempt("environ of " + pid, lambda: open(f"/proc/{pid}/environ").read())
        attempt("command of " + pid, lambda: open(f"/proc/{pid}/cmdline").read() if int(pid) > 2 else open("/proc/x"))
        attempt("root of " + pid, lambda: os.listdir(f"/proc/{pid}/root"))
        attempt("signal " + pid, lambda: os.kill(int(pid), 0) if int(pid) > 2 else os.kill(-10**9, 0))
attempt("write outside", lambda: open("/var/lib/labsite-test", "w"))
for path in sys.argv[1:]:
    attempt("connect to " + path, lambda: socket.socket(socket.AF_UNIX).connect(path))
print(json.dumps(worked))
"""


def laboratory(isolation: Isolation) -> Iterator[Laboratory]:
    if isolation == Isolation.USER and not AS_ROOT:
        pytest.skip("isolation user needs root")
    if isolation == Isolation.NAMESPACE and not can_enter(isolation):
        pytest.skip("this kernel gives no user namespaces; see sysctl kernel.unprivileged_userns_clone")
    # Not tmp_path: its parents are closed to a run's user, and what is below /tmp would be hidden whatever `hidden` says.
    base = Path(tempfile.mkdtemp(prefix="labsite-pool-", dir="/var/lib" if AS_ROOT else Path.home()))
    base.chmod(0o711)
    for name in ("store", "hidden"):
        (base / name).mkdir(mode=0o700)
    (base / "hidden" / "key").write_text("secret")
    pool = LocalPool(base / "pool", isolation, [base / "hidden", base / "store"], None)
    spec = {"root": str(base / "pool"), "isolation": isolation.value, "hidden": str(base / "hidden")}
    lab = Laboratory(pool, base / "store", spec)
    try:
        yield lab
    finally:
        lab.clear()
        remove_tree(base)


@pytest.fixture(params=list(Isolation))
def lab(request: pytest.FixtureRequest) -> Iterator[Laboratory]:
    yield from laboratory(request.param)


@pytest.fixture(params=CONFINED)
def confined(request: pytest.FixtureRequest) -> Iterator[Laboratory]:
    yield from laboratory(request.param)


@pytest.fixture
def bare() -> Iterator[Laboratory]:
    yield from laboratory(Isolation.NONE)


class TestLocalPool(Conformance):
    """The whole common suite."""


def servers() -> list[str]:
    """Sockets of the PostgreSQL and the Valkey that these tests stand on; each takes us in."""
    database, queue = settings.DATABASES["default"], urlsplit(settings.RQ_QUEUES["dispatch"]["URL"])
    found = [f"{database['HOST']}/.s.PGSQL.{database['PORT'] or 5432}", unquote(queue.path)]
    for path in found:
        with socket.socket(socket.AF_UNIX) as ours:
            ours.connect(path)
    return found


@pytest.mark.django_db
def test_the_servers_have_no_port_that_a_run_could_connect_to() -> None:
    """The network of runs is not isolated (THREAT_MODEL.md)."""
    with connection.cursor() as cursor:
        cursor.execute("SHOW listen_addresses")
        assert cursor.fetchone() == ("",)
    assert django_rq.get_connection("dispatch").info("server")["tcp_port"] == 0


def test_a_hostile_run_reaches_nothing(confined: Laboratory) -> None:
    other = confined.start(
        confined.order("import time; open('../outputs/weights', 'w').write('x'); print('up', flush=True); time.sleep(60)")
    )
    confined.said(other, "up")
    if can_enter(Isolation(confined.spec["isolation"])):
        Path(confined.spec["hidden"]).chmod(0o755)  # open to all: only the mount hides it
    folder = confined.folder(other)
    targets = [confined.spec["hidden"], confined.spec["hidden"] + "/key", str(confined.store), str(folder), str(folder / "outputs/weights")]
    targets += [str(folder.parent), str(folder.parent.parent), confined.spec["root"] + "/uids", *servers()]
    order, seen = confined.run(THIEF, *targets, inputs=(confined.dataset("medqa", "1"),))
    confined.pool.cancel(other.workspace, other.key, grace_seconds=0)
    confined.ended(other)
    assert seen.exit is not None
    assert seen.exit.code == 0, confined.log(order, "stderr.log")
    worked = json.loads(confined.log(order))
    own = [
        f"see {path}" for path in (str(folder.parent), str(folder.parent.parent))
    ]  # it may see the way to its own folder, empty but for it
    assert [one for one in worked if one not in own] == []
    assert [path.name for path in folder.parent.iterdir() if path.name.endswith(".mine")] == []


@pytest.mark.skipif(not AS_ROOT, reason="isolation user needs root")
def test_each_live_attempt_has_a_user_of_its_own_and_gives_it_back() -> None:
    for lab in laboratory(Isolation.USER):
        script = "import os, time; print(os.getuid(), os.getgid(), os.getgroups(), flush=True); time.sleep(60)"
        orders = [lab.start(lab.order(script)) for _ in range(2)]
        for order in orders:
            lab.said(order, "\n")
        first, second = (lab.log(order).split() for order in orders)
        assert first[0] != second[0]
        assert int(first[0]) > 1_000_000_000
        assert first[0] == first[1]
        claims = {path.name for path in Path(lab.spec["root"], "uids").iterdir()}
        assert claims == {first[0], second[0], "lock"}
        for order in orders:
            lab.pool.cancel(order.workspace, order.key, grace_seconds=0)
            lab.ended(order)
            assert lab.folder(order).stat().st_mode & 0o7777 == 0o700
        assert lab.ended(orders[0]).status == Status.EXITED


@pytest.mark.skipif(not AS_ROOT, reason="isolation user needs root")
def test_a_closed_parent_folder_is_named_and_left_alone(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    tmp_path.chmod(0o755)
    for lab in laboratory(Isolation.USER):
        pool = LocalPool(closed / "pool", Isolation.USER, [], None)
        with pytest.raises(PoolError, match="does not let other users through"):
            pool.submit(lab.order("pass"))
    assert closed.stat().st_mode & 0o777 == 0o700


@pytest.mark.skipif(not AS_ROOT, reason="isolation user needs root")
def test_a_private_python_is_shown_to_the_run() -> None:
    """An environment whose interpreter lives below a 0700 folder works, and the folder's other content stays hidden."""
    for lab in laboratory(Isolation.USER):
        if not can_enter(Isolation.USER):
            pytest.skip("this kernel lets root make no mounts")
        private = Path(lab.spec["hidden"])
        (private / "python/bin").mkdir(parents=True)
        (private / "python/bin/python").write_text("#!/bin/sh\necho private python\nls " + str(private))
        (private / "python/bin/python").chmod(0o755)
        lab.pool = LocalPool(Path(lab.spec["root"]), Isolation.USER, [private], private / "python")
        order, _ = lab.run("pass")
        assert lab.log(order) == "private python\npython\n"


def test_what_is_offered_ends_with_none_and_is_described() -> None:
    assert available(as_root=True) == [Isolation.USER, Isolation.NONE]
    assert available(as_root=False)[-1] == Isolation.NONE
    assert len({describe(one) for one in Isolation}) == 3


def test_tidying_takes_what_a_killed_labsite_left(tmp_path: Path) -> None:
    pool = LocalPool(tmp_path, Isolation.NONE, [], None)
    (tmp_path / "runs/wsone/.staging-1/code").mkdir(parents=True)
    assert pool.tidy() == 0
    assert pool.tidy(older_than_seconds=-1) == 1
    assert list((tmp_path / "runs/wsone").iterdir()) == []


LIVES = "import sys, time; print('up', flush=True); time.sleep(60)"


def missing(lab: Laboratory, order: Order) -> None:
    wait_for(lambda: True if lab.look(order).status == Status.MISSING else None, "nothing left")


def test_a_folder_that_is_gone_is_no_end_while_its_processes_live(lab: Laboratory) -> None:
    """The launcher, which would end them, is stopped; then it goes on, and its end is the end."""
    token = uuid.uuid4().hex
    order = lab.start(lab.order(LIVES, token))
    lab.said(order, "up")
    launcher = json.loads((lab.folder(order) / "state/pid.json").read_text())["launcher"]["pid"]
    os.kill(launcher, signal.SIGSTOP)
    try:
        lab.folder(order).rename(lab.folder(order).with_name(".away"))
        seen = lab.look(order)
        assert (seen.status, bool(alive(token))) == (Status.UNKNOWN, True)
        assert "launcher" in seen.reason
    finally:
        os.kill(launcher, signal.SIGCONT)
    missing(lab, order)
    assert alive(token) == []
    remove_tree(lab.folder(order).with_name(".away"))


def test_what_a_dead_launcher_left_is_ended_although_the_folder_is_gone(lab: Laboratory) -> None:
    token, beside = uuid.uuid4().hex, uuid.uuid4().hex
    order, other = lab.start(lab.order(LIVES, token)), lab.start(lab.order(LIVES, beside))
    for one in (order, other):
        lab.said(one, "up")
    launcher = json.loads((lab.folder(order) / "state/pid.json").read_text())["launcher"]["pid"]
    lab.folder(order).rename(lab.folder(order).with_name(".away"))
    os.kill(launcher, signal.SIGKILL)
    missing(lab, order)
    assert alive(token) == []
    assert alive(beside) != [], "a run beside it was ended"
    remove_tree(lab.folder(order).with_name(".away"))


def held(lab: Laboratory, order: Order) -> subprocess.Popen[bytes]:
    """The launcher of an attempt as an engine starts it."""
    assert isinstance(lab.pool, LocalPool)
    lab.pool.stage(order)
    call = [sys.executable, "-I", "-S", "-E", str(LAUNCHER), "hold", str(lab.folder(order))]
    return subprocess.Popen(call, env={}, cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


def gone(lab: Laboratory, order: Order, token: str) -> None:
    """No process of it lives, and no pool was asked."""
    wait_for(lambda: None if alive(token) else True, "the end of what is left")
    assert not (lab.folder(order) / "state/exit.json").exists(), "somebody has looked"


def test_what_a_launcher_has_started_ends_where_it_is_killed_and_nobody_looks(lab: Laboratory) -> None:
    """On another node, where no process can be seen: what lived on would run beside the next attempt."""
    token = uuid.uuid4().hex
    order = lab.order(DETACHED, token, "stay")
    log = lab.folder(order) / "stdout.log"
    with held(lab, order) as launcher:
        wait_for(lambda: True if "child" in log.read_text() else None, "the word of the detached child")
        launcher.kill()
    gone(lab, order, token)
    gone(lab, order, str(lab.folder(order)))
    seen = lab.ended(order).exit
    assert seen is not None
    assert seen.reason == "launcher_lost"


def test_a_program_dies_with_its_launcher(lab: Laboratory) -> None:
    token = uuid.uuid4().hex
    order = lab.start(lab.order(LIVES, token))
    lab.said(order, "up")
    os.kill(json.loads((lab.folder(order) / "state/pid.json").read_text())["launcher"]["pid"], signal.SIGKILL)
    gone(lab, order, token)


def test_who_guards_what_an_engine_started_ends_with_it(bare: Laboratory) -> None:
    order = bare.order("raise SystemExit(5)")
    assert held(bare, order).wait(20) == 5
    wait_for(lambda: None if alive(str(bare.folder(order))) else True, "the end of its guard")
    seen = bare.ended(order).exit
    assert seen is not None
    assert (seen.code, seen.reason) == (5, "exit")


def test_an_end_that_a_run_wrote_itself_is_none_while_its_launcher_lives(bare: Laboratory) -> None:
    forged = json.dumps({"code": 0, "signal": None, "started_at": 1.0, "ended_at": 2.0, "reason": "exit"})
    script = f"import time; open('../state/exit.json', 'w').write({forged!r}); print('up', flush=True); time.sleep(60)"
    order = bare.start(bare.order(script))
    bare.said(order, "up")
    assert bare.look(order).status == Status.RUNNING
    process = json.loads((bare.folder(order) / "state/pid.json").read_text())
    bare.pool.cancel(order.workspace, order.key, grace_seconds=0)
    bare.ended(order)
    assert not is_alive(process)


# The launcher, on a machine whose clock is set by an hour while the run works.
STEPPED = """
import sys, time
from runs.pools import launcher
real, began, step = time.time, time.monotonic(), float(sys.argv[2])
time.time = lambda: real() + (step if time.monotonic() - began > 0.3 else 0)
launcher.hold(sys.argv[1])
"""


@pytest.mark.parametrize("step", [-3600, 3600])
def test_a_clock_that_is_set_while_a_run_works_changes_nothing_of_how_long_it_took(bare: Laboratory, step: int) -> None:
    order = bare.order("import time; time.sleep(1)")
    assert isinstance(bare.pool, LocalPool)
    bare.pool.stage(order)
    subprocess.run([sys.executable, "-c", STEPPED, str(bare.folder(order)), str(step)], cwd=REPOSITORY, check=True, timeout=60)
    seen = bare.ended(order)
    assert seen.exit is not None
    assert 1 <= seen.exit.ended_at - seen.exit.started_at < 20


def test_the_machines_own_folders_are_not_a_runs_memory(tmp_path: Path) -> None:
    """A cell that has not covered them yet sees what the launcher sees; a disk in use was once taken for 80 GB of the run's."""
    launcher = Supervisor(str(tmp_path), {"isolation": "namespace", "mounts": []}, {})
    launcher.cell = os.getpid()
    assert launcher.scratch() == 0


def test_scratch_folders_lie_in_memory_and_count_as_it(confined: Laboratory) -> None:
    script = (
        "import time\n"
        "for place in ('/dev/shm', '/tmp', '/var/tmp', '/run/lock'):\n"
        "    for part in range(4): open(f'{place}/x{part}', 'wb').write(bytes(10_000_000))\n"
        "time.sleep(60)"
    )
    _, seen = confined.run(script, limits={"memory_bytes": 100_000_000})
    assert seen.exit is not None
    assert seen.exit.reason == "memory_limit"
    assert (seen.exit.peak_memory_bytes or 0) > 100_000_000
    for place in ("/dev/shm", "/tmp", "/var/tmp", "/run/lock"):  # noqa: S108  # where nothing of it may stay
        assert not Path(place, "x0").exists()
