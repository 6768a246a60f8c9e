"""The pool over SSH against a real sshd: the common suite, what a run must not reach, and what travels."""

import ast
import contextlib
import json
import os
import threading
import tomllib
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from runs.pools import ssh_connection
from runs.pools.arrive import OLDEST, arrive, digest
from runs.pools.base import PoolError, Status
from runs.pools.isolation import Isolation, barrier, describe
from runs.pools.ssh_thread import close_all
from runs.pools.travelling import TRAVELLING, travelling
from tests.runs.pools import ssh_laboratory
from tests.runs.pools.conformance import Conformance
from tests.runs.pools.laboratory import REPOSITORY, Laboratory, wait_for
from tests.runs.pools.ssh_host import AS_ROOT, SSHHost, processes_of
from tests.runs.pools.ssh_laboratory import pool_on

# Prints which of the paths it could see into.
READER = """
import json, os, sys
seen = []
for path in sys.argv[1:]:
    try:
        found = os.listdir(path) if os.path.isdir(path) else open(path, "rb").read(1)
    except OSError:
        continue
    if found:
        seen.append(path)
print(json.dumps(seen))
"""


@pytest.fixture(scope="module")
def host() -> Iterator[SSHHost]:
    found = SSHHost()
    try:
        yield found
    finally:
        close_all()
        found.close()


@pytest.fixture(params=[Isolation.NONE, Isolation.NAMESPACE])
def lab(request: pytest.FixtureRequest, host: SSHHost, tmp_path: Path) -> Iterator[Laboratory]:
    yield from ssh_laboratory.laboratory(host, tmp_path, request.param)


@pytest.fixture
def bare(host: SSHHost, tmp_path: Path) -> Iterator[Laboratory]:
    yield from ssh_laboratory.laboratory(host, tmp_path)


@pytest.fixture
def confined(host: SSHHost, tmp_path: Path) -> Iterator[Laboratory]:
    yield from ssh_laboratory.laboratory(host, tmp_path, Isolation.NAMESPACE)


class TestSSHPool(Conformance):
    """The whole common suite."""


def seen_by_a_run(lab: Laboratory, targets: list[str]) -> list[str]:
    order, seen = lab.run(READER, *targets)
    assert seen.exit is not None
    assert seen.exit.code == 0, lab.log(order, "stderr.log")
    found: list[str] = json.loads(lab.log(order))
    return found


@pytest.mark.skipif(not AS_ROOT, reason="an account of its own for the far side needs root")
def test_the_far_account_reaches_nothing_of_labsite(lab: Laboratory, tmp_path: Path) -> None:
    home = tmp_path / "labsite-home"
    (home / "keys").mkdir(parents=True, mode=0o700)
    home.chmod(0o700)
    (home / "keys/secret.key").write_text("secret")
    targets = [str(home), str(home / "keys/secret.key"), str(lab.store), lab.spec["private_key_file"]]
    if barrier(REPOSITORY / "manage.py") is not None or os.environ.get("LABSITE_REQUIRE") == "all":
        targets += [str(REPOSITORY), str(REPOSITORY / "manage.py"), str(REPOSITORY / ".venv/pyvenv.cfg")]
    assert seen_by_a_run(lab, targets) == []


def test_a_confined_run_sees_neither_the_pool_nor_the_home_around_it(confined: Laboratory, host: SSHHost) -> None:
    (host.home / "diary").write_text("private")
    other = confined.start(
        confined.order("import time; open('../outputs/weights', 'w').write('x'); print('up', flush=True); time.sleep(60)")
    )
    confined.said(other, "up")
    root, folder = Path(confined.spec["root"]), confined.folder(other)
    name, _ = travelling()
    targets = [host.home / "diary", root / "store", root / "launcher" / name / "runs/pools/far.py"]
    targets += [folder, folder / "outputs/weights", folder / "state/lock"]
    assert all(path.exists() for path in targets)
    assert seen_by_a_run(confined, [str(path) for path in targets]) == []
    confined.pool.cancel(other.workspace, other.key, grace_seconds=0)
    confined.ended(other)


@pytest.mark.skipif(not AS_ROOT, reason="logging in as root needs root")
def test_a_root_account_gives_each_attempt_a_user_of_its_own(tmp_path: Path) -> None:
    host = SSHHost(as_root=True)
    try:
        for lab in ssh_laboratory.laboratory(host, tmp_path, Isolation.USER):
            order, seen = lab.run("import os; print(os.getuid(), os.getgroups())")
            assert seen.exit is not None
            assert int(lab.log(order).split()[0]) > 1_000_000_000, lab.log(order, "stderr.log")
            assert seen_by_a_run(lab, [str(lab.folder(order)), lab.spec["root"] + "/store", str(tmp_path)]) == []
    finally:
        close_all()
        host.close()


def test_the_host_says_what_it_is(bare: Laboratory, host: SSHHost) -> None:
    found = pool_on(host).probe()
    assert (found.user, found.clock_offset_seconds, found.isolations[-1]) == (host.user, 0.0, Isolation.NONE)
    assert found.free_bytes > 0
    assert len({describe(one, is_far=True) for one in Isolation}) == 3


def test_secrets_and_keys_are_in_no_argument_no_log_and_on_no_disk_but_the_run_s(
    bare: Laboratory, host: SSHHost, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", logger="asyncssh")
    secret = uuid.uuid4().hex
    close_all()  # so that what follows makes a connection, and logs it
    order = bare.start(bare.order("import time; print('up', flush=True); time.sleep(60)", secrets={"TOKEN": secret}))
    bare.said(order, "up")
    told = b""
    for pid in processes_of(host.user):
        for name in ("cmdline", "environ"):
            with contextlib.suppress(OSError):
                told += Path(f"/proc/{pid}/{name}").read_bytes()
    assert str(bare.folder(order)).encode() in told
    assert secret.encode() not in told
    inner = host.private_key.splitlines()[2]
    assert "Command: exec python3" in caplog.text
    assert secret not in caplog.text + (host.folder / "sshd.log").read_text()
    assert inner not in caplog.text + repr(bare.pool.__dict__)
    holding = [path for path in host.home.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()]
    assert holding == [bare.folder(order) / "secrets/TOKEN"]
    bare.pool.cancel(order.workspace, order.key, grace_seconds=0)
    bare.ended(order)
    assert not (bare.folder(order) / "secrets").exists()


@pytest.mark.skipif(not AS_ROOT, reason="an account with a home of its own needs root")
def test_a_python_of_the_host_is_found_first_and_a_root_may_lie_below_the_home(confined: Laboratory, host: SSHHost) -> None:
    (host.home / "env/bin").mkdir(parents=True)
    (host.home / "env/bin/python").write_text('#!/bin/sh\necho "its own python" "$LABSITE_RUN_DIR"\nls ' + str(host.home))
    for path, mode in (("env/bin/python", 0o755), ("env/bin", 0o755), ("env", 0o755)):
        (host.home / path).chmod(mode)
    python = str(host.home / "env")
    confined.pool = pool_on(host, Isolation.NAMESPACE, root="~/labsite-runs/", python=python)
    confined.spec["root"] = str(host.home / "labsite-runs")
    order, _ = confined.run("pass")
    assert confined.log(order).split("\n")[:2] == [f"its own python {confined.folder(order)}", "env"], confined.log(order, "stderr.log")


def test_what_many_attempts_share_is_sent_once(bare: Laboratory, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[str] = []
    real = ssh_connection.Session.ask

    async def counted(self: ssh_connection.Session, request: bytes, *rest: object) -> object:
        asked = json.loads(request)
        sent.extend(name for name, *_ in asked.get("files", ()))
        return await real(self, request, *rest)  # type: ignore[arg-type]  # passed on as they came

    monkeypatch.setattr(ssh_connection.Session, "ask", counted)
    data = bare.dataset("medqa", uuid.uuid4().hex)
    for script in ("print(1)", "print(2)"):
        order, _ = bare.run(f"{script}  # {uuid.uuid4().hex}", inputs=(data,))
    assert sorted(sent) == ["main.py", "main.py", "table.csv"]
    # What was changed on the host is noticed, and sent anew.
    kept = Path(bare.spec["root"]) / "store" / data.files[0].sha256
    kept.write_text("tampered")
    order = bare.order("print('ran')", inputs=(data,))
    with pytest.raises(PoolError, match=r"table\.csv does not have the hash"):
        bare.pool.submit(order)
    bare.pool.submit(order)
    bare.ended(order)
    assert bare.log(order) == "ran\n"


def test_names_in_any_script_come_and_go(bare: Laboratory) -> None:
    name = "データ/naïve café/😀 #1.py"
    code = bare.keep(name, "import shutil, sys; shutil.copy(sys.argv[0], '../outputs/\u00e9\u0301 \u05d0 \U0001f600')")
    order = bare.order("pass")
    order = type(order)(order.key, order.workspace, {**order.job, "argv": ["python", "-I", name]}, (code,), (), {})
    bare.start(order)
    seen = bare.ended(order)
    assert seen.exit is not None
    assert seen.exit.code == 0, bare.log(order, "stderr.log")
    (found,) = bare.pool.outputs(order.workspace, order.key)
    assert found.path == "\u00e9\u0301 \u05d0 \U0001f600"
    with bare.pool.open_output(order.workspace, order.key, found.path) as file:
        assert file.read() == code.source.read_bytes()


def test_many_threads_share_one_connection(bare: Laboratory, host: SSHHost) -> None:
    order, _ = bare.run("print('hello')")
    close_all()
    problems: list[BaseException] = []

    def look() -> None:
        try:
            for _ in range(5):
                assert bare.look(order).status == Status.EXITED
                assert bare.log(order) == "hello\n"
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=look) for _ in range(2 * ssh_connection.MAX_SESSIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert problems == []
    assert host.connections() == 1


def test_an_idle_connection_is_closed_and_comes_back(bare: Laboratory, host: SSHHost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ssh_connection, "IDLE_SECONDS", 0.3)
    close_all()
    order = bare.start(bare.order("import time; time.sleep(60)"))
    assert host.connections() == 1
    wait_for(lambda: True if host.connections() == 0 else None, "the end of the idle connection")
    assert bare.look(order).status == Status.RUNNING
    bare.pool.cancel(order.workspace, order.key, grace_seconds=0)
    bare.ended(order)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_makes_its_own_connection(bare: Laboratory) -> None:
    order, _ = bare.run("pass")
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if bare.look(order).status == Status.EXITED else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert bare.look(order).status == Status.EXITED


@pytest.mark.parametrize("name", [*TRAVELLING, "arrive.py"])
def test_what_travels_is_understood_by_the_oldest_python(name: str) -> None:
    """ruff checks the same files against 3.8 as well (pyproject.toml); what they call is for the host to show."""
    source = (REPOSITORY / "runs/pools" / name).read_text()
    ast.parse(source, feature_version=OLDEST)
    told = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["tool"]["ruff"]["per-file-target-version"]
    assert any(name.removesuffix(".py") in pattern for pattern, version in told.items() if version == "py38")


def test_a_copy_of_the_launcher_is_whole_or_absent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name, files = travelling()
    root = tmp_path / "pool"
    assert "is not there" in arrive(str(root), name, files, new=False)
    assert "did not arrive" in arrive(str(root), name, {**files, "far.py": "x"}, new=True)
    assert not root.exists()
    assert [arrive(str(root), name, files, new=True) for _ in range(2)] == ["", ""]
    assert [path.name for path in (root / "launcher").iterdir()] == [name]
    assert digest({one.name: one.read_text() for one in (root / "launcher" / name / "runs/pools").iterdir()}) == name
    monkeypatch.setattr("runs.pools.arrive.OLDEST", (99,))
    assert "Python 3.8 or newer is needed" in arrive(str(root), name, files, new=True)
