"""Start the command of a run folder, watch it, end it, and write down how it ended.

A script of the standard library. `python -I -S -E launcher.py run FOLDER` detaches and prints `started`, `exists` or a reason once
the answer is durable; `... hold FOLDER` does the same in the foreground, for an engine that started it, and ends with the run's own status;
`... wait ROOM` forks a launcher for each folder that it is asked for (`waiting.py`), as detached as one that `run` leaves;
`... finish FOLDER REASON` ends what a killed launcher left behind, `... gone FOLDER UID` where the folder itself was taken away;
`... trial ISOLATION` says by its exit status whether this kernel lets us. It needs no running labsite: the limits hold while labsite is
down. What it may rely on is in `state/` (written by labsite, out of the run's reach) and `job.json`; what the run wrote is never trusted.
"""

import contextlib
import ctypes
import importlib
import os
import signal
import sys
import time

sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from runs.pools import cell
from runs.pools.processes import identity, is_alive, launched, marked, read_json, signal_user, stat_fields, write_json
from runs.pools.supervisor import Supervisor

PR_SET_CHILD_SUBREAPER = 36

TYPE_CHECKING = False  # what is imported here, every start of a run waits for
if TYPE_CHECKING:
    from collections.abc import Callable


def seal(folder: str, start: "dict[str, object]", outcome: "dict[str, object]") -> None:
    """After the last process is gone: no secret stays, the user id cannot reach the folder any more, the end is on disk, the id is free."""
    empty(os.path.join(folder, "secrets"))
    if start.get("uid") is not None:
        os.chown(folder, 0, 0)
        os.chmod(folder, 0o700)
    while True:
        try:
            write_json(os.path.join(folder, "state", "exit.json"), outcome, exclusive=True)
        except (FileExistsError, FileNotFoundError):
            pass  # another finisher was first and its word stands, or somebody has removed the folder
        except OSError:
            time.sleep(1)  # a full disk: the end must not be lost, so wait for room
            continue
        break
    claim = start.get("claim")
    if claim:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(str(claim))


def empty(folder: str) -> None:
    """Remove a folder with all that is in it, following no link; what cannot be removed stays. (shutil's takes longer to import than to run.)"""
    with contextlib.suppress(OSError):
        for _, folders, names, handle in os.fwalk(folder, topdown=False):
            for name in (*names, *folders):
                try:
                    os.unlink(name, dir_fd=handle)
                except OSError:
                    with contextlib.suppress(OSError):
                        os.rmdir(name, dir_fd=handle)
        os.rmdir(folder)


def run(folder: str) -> str:
    """Take the fence, start, and say so; the caller's process goes on as the supervisor in the background."""
    reader, writer = os.pipe()
    if os.fork():
        os.close(writer)
        return os.read(reader, 1000).decode() or "the launcher died"
    detached(folder, writer)
    os._exit(0)


def detached(folder: str, writer: int) -> None:
    """Leave the caller's session and streams, and `watch`; what is said of the start goes to `writer`."""
    os.setsid()
    null = os.open("/dev/null", os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(null, number)

    def say(text: str) -> None:
        with contextlib.suppress(BrokenPipeError):  # whoever asked is gone, or waits no longer: the folder says it to all
            os.write(writer, text.encode())
        os.close(writer)

    watch(folder, say)


def wait() -> None:
    """Fork a launcher for each folder that is asked for at standard input, a socket, with the pipe that wants the answer; until nobody asks."""
    socket = importlib.import_module("socket")  # no other launcher waits for it
    door = socket.socket(fileno=0)
    importlib.import_module("gc").freeze()  # what is there already is never written to again: forks share it
    while True:
        asked, rights, _, _ = door.recvmsg(4096, socket.CMSG_SPACE(4), socket.MSG_CMSG_CLOEXEC)
        if not asked:
            return
        answer = int.from_bytes(rights[0][2][:4], sys.byteorder)
        child = os.fork()
        if child == 0:
            # Twice, so that what watches the run is nobody's child, and nobody who ends labsite's processes finds it below them.
            if os.fork() == 0 and be_called(asked):
                detached(os.fsdecode(asked), answer)
            os._exit(0)
        os.close(answer)
        os.waitpid(child, 0)


def be_called(folder: bytes) -> bool:
    """Put the folder on our command line, by which `launched` finds us; False where there is no room. The kernel shows what stands in our memory
    where the command line was when we were started (proc(5), arg_start)."""
    fields = stat_fields(os.getpid())
    with open("/proc/self/cmdline", "rb") as file:
        words = file.read()
    kept, told = words.index(b"\0wait\0") + 1, b"run\0" + folder + b"\0"
    begins = int(fields[45]) if fields else 0
    if not begins or len(told) > len(words) - kept:
        return False
    ctypes.memmove(begins + kept, told.ljust(len(words) - kept, b"\0"), len(words) - kept)
    return True


def hold(folder: str) -> int:
    """Take the fence, start, and stay; the exit status of the run (128 + signal where one ended it), 0 where it was started before."""

    def say(text: str) -> None:
        with contextlib.suppress(OSError):  # an engine whose log is full or gone loses a word, not the run
            os.write(1, text.encode() + b"\n")

    ended = watch(folder, say, is_guarded=True)
    if ended is None:
        return 0 if os.path.exists(os.path.join(folder, "state", "lock")) else 1
    code, number = ended["code"], ended["signal"]
    return code if isinstance(code, int) else 128 + number if isinstance(number, int) else 1


def watch(folder: str, say: "Callable[[str], None]", *, is_guarded: bool = False) -> "dict[str, object] | None":
    """Take the fence, start, say how that went, watch until the end; its outcome, or None where nothing was started."""
    state = os.path.join(folder, "state")
    start, job = read_json(os.path.join(state, "start.json")), read_json(os.path.join(folder, "job.json"))
    if start is None or job is None:
        say("the folder is not staged")
        return None
    try:
        write_json(os.path.join(state, "lock"), {"launcher": identity(os.getpid())}, exclusive=True)
    except FileExistsError:
        say("exists")
        return None
    relieve = guard(folder, start) if is_guarded else None
    checked = ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    supervisor = Supervisor(folder, start, job)
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGTERM, lambda *_: supervisor.end("cancelled", supervisor.limits.get("grace_seconds", 0)))
    if checked != 0:
        say("this kernel has no sub-reaper")
        os._exit(1)
    supervisor.launch()
    say("started")
    try:
        supervisor.watch()
    except Exception:
        # Nothing may run unwatched. Without exit.json the next observation says launcher_lost.
        supervisor.signal_all(signal.SIGKILL)
        raise
    if relieve is not None:
        with contextlib.suppress(OSError):  # somebody has killed it
            os.write(relieve, b".")
    outcome = supervisor.conclude()
    seal(folder, start, outcome)
    return outcome


def guard(folder: str, start: "dict[str, object]") -> "int | None":
    """Leave somebody who ends what we leave on this machine if we are killed: an engine takes our death for the end, and the next look may come from
    a machine that sees no process of this one. We hold a pipe to it, which closes with us; a byte in it says that nothing is left."""
    if os.getpid() == 1:
        return None  # of a container, whose every process ends with us
    reader, writer = os.pipe()
    child = os.fork()
    if child != 0:
        os.close(reader)
        os.waitpid(child, 0)
        return writer
    try:
        if os.fork() == 0:  # nobody's child: it is none of the run's processes
            os.close(writer)
            os.setsid()
            for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
                signal.signal(number, signal.SIG_IGN)
            null = os.open("/dev/null", os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(null, stream)
            if not os.read(reader, 1):
                kill_left(folder, uid_of(start))
    finally:
        os._exit(0)


def uid_of(start: "dict[str, object]") -> "int | None":
    uid = start.get("uid")
    return int(str(uid)) if uid is not None else None


def kill_left(folder: str, number: "int | None") -> str:
    """End what a dead launcher left running, by user id or by its mark; empty once nothing lives, else how many stay."""
    deadline = time.monotonic() + 5
    while left := marked(folder, number):
        if time.monotonic() > deadline:
            return f"{len(left)} processes do not end"
        if number is not None:
            signal_user(number, signal.SIGKILL)
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                continue
        time.sleep(0.02)
    return ""


def gone(folder: str, uid: str) -> str:
    """The folder was taken away. A launcher that lives ends its run itself; what a dead one left is ended here."""
    if launched(folder):
        return "its launcher still ends it"
    return kill_left(folder, int(uid) if uid else None) or "ended"


def finish(folder: str, reason: str) -> str:
    """End what a dead launcher left, and write the end it could not see, for that reason."""
    state = os.path.join(folder, "state")
    start, lock = (read_json(os.path.join(state, "start.json")) or {}, read_json(os.path.join(state, "lock")) or {})
    launcher = lock.get("launcher")
    if isinstance(launcher, dict) and is_alive(launcher):
        return "alive"
    if left := kill_left(folder, uid_of(start)):
        return left
    began = os.stat(os.path.join(state, "lock")).st_mtime
    heartbeat = os.path.join(state, "heartbeat")
    beat = os.stat(heartbeat).st_mtime if os.path.exists(heartbeat) else began
    outcome = {"code": None, "signal": None, "started_at": began, "ended_at": max(began, beat), "reason": reason}
    seal(folder, start, {**outcome, "peak_memory_bytes": None, "cpu_seconds": None, "samples": []})
    return "finished"


if __name__ == "__main__":
    if sys.argv[1] == "trial":
        os._exit(cell.trial(sys.argv[2]))
    if sys.argv[1] == "hold":
        os._exit(hold(sys.argv[2]))
    if sys.argv[1] == "wait":
        wait()
    elif sys.argv[1] == "run":
        os.write(1, run(sys.argv[2]).encode())
    else:
        os.write(1, {"finish": finish, "gone": gone}[sys.argv[1]](sys.argv[2], sys.argv[3]).encode())
    os._exit(0)
