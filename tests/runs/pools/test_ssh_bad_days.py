"""What happens to a pool over SSH on bad days: each against a real sshd."""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import threading
import time
import tracemalloc
import uuid
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from runs.pools import ssh, ssh_connection, ssh_thread
from runs.pools.base import NoAnswer, Order, PoolError, StagedFile, Status
from runs.pools.isolation import Isolation
from runs.pools.processes import identity, is_alive
from runs.pools.sending import Sized, pieces_of
from runs.pools.ssh_thread import close_all
from tests.runs.pools import ssh_laboratory
from tests.runs.pools.laboratory import Laboratory, alive, wait_for
from tests.runs.pools.ssh_host import AS_ROOT, SSHHost
from tests.runs.pools.ssh_laboratory import pool_on

WAITS = "import os, sys, time; open('../metrics.jsonl', 'a').write('x'); print('up', flush=True); time.sleep(60)"
MEBIBYTE = 1 << 20


@pytest.fixture(scope="module")
def host() -> Iterator[SSHHost]:
    found = SSHHost()
    try:
        yield found
    finally:
        close_all()
        found.close()


@pytest.fixture
def lab(host: SSHHost, tmp_path: Path) -> Iterator[Laboratory]:
    yield from ssh_laboratory.laboratory(host, tmp_path)


def finish(lab: Laboratory, order: Order) -> None:
    lab.pool.cancel(order.workspace, order.key, grace_seconds=0)
    lab.ended(order)


def big(lab: Laboratory, size: int) -> StagedFile:
    """A file of zeros, sparse on our side, with something of its own at the end."""
    path = lab.store / "big"
    with open(path, "wb") as file:
        file.truncate(size)
        file.seek(0, os.SEEK_END)
        file.write(uuid.uuid4().bytes)
    with open(path, "rb") as file:
        return StagedFile("big.bin", path, hashlib.file_digest(file, "sha256").hexdigest())


def with_code(order: Order, file: StagedFile) -> Order:
    return Order(order.key, order.workspace, order.job, (*order.code, file), (), {})


def test_large_files_on_their_way_keep_nobody_from_the_host(lab: Laboratory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sending takes as long as it takes, and says nothing of how the host answers."""
    monkeypatch.setattr(ssh_thread, "PATIENCE_SECONDS", 0.1)
    sending, go_on = threading.Semaphore(0), threading.Event()

    def slowly(files: Sequence[Sized]) -> Iterator[bytes]:
        sending.release()
        assert go_on.wait(20)
        yield from pieces_of(files)

    monkeypatch.setattr(ssh, "pieces_of", slowly)
    orders = [lab.order(f"print({number})") for number in range(2)]
    threads = [threading.Thread(target=lab.pool.submit, args=(order,)) for order in orders]
    for thread in threads:
        thread.start()
    try:
        assert all(sending.acquire(timeout=60) for _ in threads)
        until = time.monotonic() + 0.5
        while time.monotonic() < until:
            assert lab.look(orders[0]).status == Status.MISSING
    finally:
        go_on.set()
        for thread in threads:
            thread.join()
    assert [lab.ended(order).status for order in orders] == [Status.EXITED] * 2


def test_a_host_out_of_reach_is_no_end_and_comes_back(lab: Laboratory, host: SSHHost) -> None:
    order = lab.start(lab.order("import time; print('up', flush=True); time.sleep(2); print('done')"))
    lab.said(order, "up")
    host.stop()
    try:
        late = lab.order("print('late')")
        calls = (
            lambda: lab.look(order),
            lambda: lab.log(order),
            lambda: lab.pool.outputs(order.workspace, order.key),
            lambda: lab.pool.cancel(order.workspace, order.key, grace_seconds=0),
            lambda: lab.pool.submit(late),
        )
        for call in calls:
            with pytest.raises(NoAnswer, match=r"cannot be reached: |broke"):
                call()
    finally:
        host.start()
    seen = lab.ended(order)
    assert seen.exit is not None
    assert (seen.exit.code, lab.log(order)) == (0, "up\ndone\n")
    assert lab.look(late).status == Status.MISSING


def test_the_limit_of_time_holds_while_the_host_is_out_of_reach(lab: Laboratory, host: SSHHost) -> None:
    token = uuid.uuid4().hex
    script = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(60)"
    order = lab.start(lab.order(script, token, limits={"wall_seconds": 1.5}))
    lab.said(order, "up")
    host.stop()
    try:
        wait_for(lambda: True if not alive(token) else None, "the watchdog on the far side")
    finally:
        host.start()
    seen = lab.ended(order)
    assert seen.exit is not None
    assert seen.exit.reason == "wall_limit"


def test_a_link_that_swallows_everything_is_given_up_in_time(lab: Laboratory, host: SSHHost, monkeypatch: pytest.MonkeyPatch) -> None:
    order, seen = lab.run("pass")
    monkeypatch.setattr(ssh_connection, "CALL_SECONDS", 1.0)
    assert host.cut(signal.SIGSTOP) > 0
    try:
        with pytest.raises(PoolError, match="did not answer in time"):
            lab.look(order)
        assert lab.look(order) == seen  # by a connection of its own
    finally:
        host.cut(signal.SIGCONT)


def test_a_far_side_that_fails_says_why(lab: Laboratory) -> None:
    order, _ = lab.run("pass")
    with pytest.raises(PoolError, match=r"broke off: .*Error"):
        lab.pool.read("wsone", "key", "stdout.log", offset="no number", limit=1)  # type: ignore[arg-type]  # which is the point
    assert lab.look(order).status == Status.EXITED


def test_a_connection_that_is_cut_while_idle_is_made_anew(lab: Laboratory, host: SSHHost) -> None:
    order = lab.start(lab.order(WAITS))
    assert host.cut() > 0
    assert lab.look(order).status == Status.RUNNING
    finish(lab, order)


def test_a_host_that_goes_while_files_are_sent_starts_nothing(lab: Laboratory, host: SSHHost) -> None:
    store = Path(lab.spec["root"]) / "store"
    order = with_code(lab.order("print('ran')"), big(lab, 192 * MEBIBYTE))
    problems: list[PoolError] = []

    def submit() -> None:
        try:
            lab.pool.submit(order)
        except PoolError as error:
            problems.append(error)

    thread = threading.Thread(target=submit)
    thread.start()
    wait_for(lambda: True if any(path.stat().st_size > MEBIBYTE for path in drafts(store)) else None, "the first megabyte")
    host.stop()
    try:
        thread.join(30)
        assert [error.reason for error in problems if "broke" in error.reason or "cannot be reached" in error.reason] != []
    finally:
        host.start()
    assert lab.look(order).status == Status.MISSING
    wait_for(lambda: None if drafts(store) else True, "the half file to be removed")
    assert not (store / order.code[1].sha256).exists()
    lab.pool.submit(order)
    lab.ended(order)
    assert lab.log(order) == "ran\n"


def test_a_connection_that_is_cut_while_files_are_sent_is_made_anew(lab: Laboratory, host: SSHHost) -> None:
    store = Path(lab.spec["root"]) / "store"
    order = with_code(lab.order(WAITS), big(lab, 192 * MEBIBYTE))
    lab.run("pass")
    thread = threading.Thread(target=lab.pool.submit, args=(order,))
    thread.start()
    wait_for(lambda: True if any(path.stat().st_size > MEBIBYTE for path in drafts(store)) else None, "the first megabyte")
    assert host.cut() > 0
    thread.join(60)
    lab.said(order, "up")
    finish(lab, order)
    assert lab.log(order, "metrics.jsonl") == "x"
    assert drafts(store) == []


def drafts(store: Path) -> list[Path]:
    return list(store.glob(".new-*"))


def test_an_answer_that_is_lost_starts_nothing_twice(lab: Laboratory, monkeypatch: pytest.MonkeyPatch) -> None:
    """The host has started the attempt; that it said so never arrives."""
    lost: list[bool] = []
    real = ssh_connection.Session.ask

    async def loses(self: ssh_connection.Session, request: bytes, *rest: object) -> object:
        answer = await real(self, request, *rest)  # type: ignore[arg-type]  # passed on as they came
        if json.loads(request)["what"] == "start" and len(lost) < 2:
            lost.append("error" in answer[0])
            raise ssh_connection.BrokenError
        return answer

    monkeypatch.setattr(ssh_connection.Session, "ask", loses)
    order = lab.order(WAITS)
    with pytest.raises(PoolError, match="broke"):
        lab.pool.submit(order)
    assert lost == [False, False]
    lab.said(order, "up")
    lab.pool.submit(order)
    assert lab.look(order).status == Status.RUNNING
    finish(lab, order)
    assert lab.log(order, "metrics.jsonl") == "x"


@pytest.mark.skipif(not AS_ROOT, reason="a small file system needs root")
def test_an_answer_that_comes_twice_is_taken_for_no_other(lab: Laboratory, monkeypatch: pytest.MonkeyPatch) -> None:
    """What stands in the line already answers the question before; here it would show one attempt as another."""
    first, second = lab.start(lab.order(WAITS)), lab.start(lab.order("pass"))
    lab.said(first, "up")
    wait_for(lambda: lab.look(second).status == Status.EXITED or None, "the end of the second")
    real = ssh_connection.Session.ask
    kept: list[tuple[dict[str, object], bytes]] = []

    async def repeats(self: ssh_connection.Session, request: bytes, *rest: object) -> object:
        answer = await real(self, request, *rest)  # type: ignore[arg-type]  # passed on as they came
        if json.loads(request)["what"] != "observe":
            return answer
        kept.append(answer)
        return kept[max(0, len(kept) - 2)]  # each answer but the first stands behind another one

    monkeypatch.setattr(ssh_connection.Session, "ask", repeats)
    assert lab.look(first).status == Status.RUNNING
    for order, expected in ((second, Status.EXITED), (first, Status.RUNNING)):
        with suppress(PoolError):  # that it is not known is an answer
            assert lab.look(order).status in (expected, Status.UNKNOWN)
    monkeypatch.undo()
    assert lab.look(second).status == Status.EXITED
    finish(lab, first)


def test_a_full_disk_over_there_is_said_and_leaves_nothing(lab: Laboratory, host: SSHHost) -> None:
    small = host.home / "small"
    small.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m,mode=0777", "tmpfs", str(small)], capture_output=True, check=False)
    if mounted.returncode != 0:
        pytest.skip("this machine lets root make no mounts")
    try:
        pool = pool_on(host, root=str(small / "runs"))
        order = with_code(lab.order("print('ran')"), big(lab, 8 * MEBIBYTE))
        with pytest.raises(NoAnswer, match="No space left on device"):
            pool.submit(order)
        assert pool.observe(order.workspace, order.key).status == Status.MISSING
        wait_for(lambda: None if drafts(small / "runs/store") else True, "the half file to be removed")
        # It fits once into the store, and not a second time into the folder.
        order = with_code(lab.order("print('ran')"), big(lab, 2 * MEBIBYTE + MEBIBYTE // 2))
        with pytest.raises(NoAnswer, match="No space left on device"):
            pool.submit(order)
        assert pool.observe(order.workspace, order.key).status == Status.MISSING
        assert list((small / "runs/runs/wsone").iterdir()) == []
        subprocess.run(["mount", "-o", "remount,size=32m", str(small)], check=True)
        pool.submit(order)
        wait_for(lambda: True if pool.observe(order.workspace, order.key).status == Status.EXITED else None, "the end")
        assert pool.read(order.workspace, order.key, "stdout.log", offset=0, limit=100) == b"ran\n"
    finally:
        close_all()
        subprocess.run(["umount", "--lazy", str(small)], check=True)


def test_a_clock_that_is_an_hour_off_changes_no_time_of_ours(lab: Laboratory, host: SSHHost, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours is set back, which is the same as theirs set forward."""
    close_all()
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() - 3600)
    began = time.time()
    order = lab.start(lab.order(WAITS))
    seen = lab.look(order)
    assert abs((seen.heartbeat_at or 0) - began) < 30
    lab.pool.cancel(order.workspace, order.key, grace_seconds=0)
    first = lab.ended(order)
    assert first.exit is not None
    assert began - 5 < first.exit.started_at <= first.exit.ended_at < time.time() + 5
    assert lab.look(order) == first
    assert pool_on(host).probe().clock_offset_seconds == 3600
    monkeypatch.undo()
    close_all()


def test_an_output_of_many_megabytes_is_streamed(lab: Laboratory) -> None:
    script = (
        "import hashlib\ndigest = hashlib.sha256()\nwith open('../outputs/big', 'wb') as file:\n"
        "    for n in range(150):\n        piece = n.to_bytes(4, 'big') * 262144; digest.update(piece); file.write(piece)\n"
        "print(digest.hexdigest())"
    )
    order, _ = lab.run(script, limits={"output_bytes": 1 << 30})
    digest, size = hashlib.sha256(), 0
    tracemalloc.start()
    try:
        with lab.pool.open_output(order.workspace, order.key, "big") as file:
            while piece := file.read(MEBIBYTE):
                digest.update(piece)
                size += len(piece)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (size, digest.hexdigest()) == (150 * MEBIBYTE, lab.log(order).strip())
    assert peak < 16 * MEBIBYTE


def test_an_output_that_is_cut_short_never_looks_whole(lab: Laboratory, host: SSHHost) -> None:
    order, _ = lab.run("open('../outputs/big', 'wb').truncate(1 << 26)", limits={"output_bytes": None})
    with lab.pool.open_output(order.workspace, order.key, "big") as file:
        assert len(file.read(MEBIBYTE)) == MEBIBYTE
        host.cut()
        for _ in range(2):
            with pytest.raises(OSError, match="broke"):
                file.read()
    # One that is left half read is no hindrance for what follows.
    for _ in range(2 * ssh_connection.MAX_SESSIONS):
        with lab.pool.open_output(order.workspace, order.key, "big") as file:
            assert file.read(10) == bytes(10)
    assert lab.look(order).status == Status.EXITED


@pytest.mark.parametrize("change", ["boot", "pid"])
def test_a_reboot_or_another_process_of_the_same_number_is_not_taken_for_the_run(lab: Laboratory, change: str) -> None:
    token = uuid.uuid4().hex
    order = lab.start(lab.order(WAITS, token))
    lab.said(order, "up")
    lock = lab.folder(order) / "state/lock"
    known = json.loads(lock.read_text())["launcher"]
    os.kill(known["pid"], 9)
    for pid in alive(token):
        os.kill(pid, 9)
    # Who lives under that number now is this test.
    here = identity(os.getpid()) or {}
    other = {**here, "boot_id": str(uuid.uuid4())} if change == "boot" else {**here, "start_time": known["start_time"]}
    lock.write_text(json.dumps({"launcher": other}))
    seen = lab.look(order)
    assert seen.exit is not None
    assert (seen.status, seen.exit.reason, seen.exit.has_run) == (Status.EXITED, "launcher_lost", True)
    lab.pool.cancel(order.workspace, order.key, grace_seconds=0)
    assert is_alive(here)


def test_a_root_that_is_gone_says_nothing_about_its_attempts(lab: Laboratory) -> None:
    order, _ = lab.run("print('hello')")
    root = Path(lab.spec["root"])
    away = root.with_name("away")
    root.rename(away)
    close_all()
    try:
        with pytest.raises(PoolError, match="is not there"):
            lab.look(order)
        assert not root.exists()
    finally:
        away.rename(root)
    assert lab.look(order).status == Status.EXITED


def test_a_far_side_that_was_killed_is_replaced(lab: Laboratory, host: SSHHost) -> None:
    close_all()
    order, seen = lab.run("print('hello')")
    for pid in alive(lab.spec["root"] + "/launcher/"):
        os.kill(pid, 9)
    assert lab.look(order) == seen
    assert host.connections() == 1


def test_what_killed_processes_left_is_swept(lab: Laboratory, host: SSHHost) -> None:
    order, _ = lab.run("pass")
    root = Path(lab.spec["root"])
    (root / "store/.new-1").write_text("half")
    (root / "runs/wsone/.staging-1/code").mkdir(parents=True)
    for path in (root / "store/.new-1", root / "runs/wsone/.staging-1", root / "runs/wsone/.staging-1/code"):
        shutil.chown(path, host.user)
    pool = pool_on(host)
    assert pool.tidy() == 0
    old = time.time() - 8 * 86_400
    os.utime(root / "store" / order.code[0].sha256, (old, old))
    assert pool.tidy(older_than_seconds=-1) == 3
    assert not (root / "store" / order.code[0].sha256).exists()
    assert Isolation.NONE in pool.probe().isolations
