"""Processes and small files as the launcher and the pool see them. Standard library only."""

import json
import os

MAX_FILES = 500_000
MAX_DEPTH = 64
OWN_ENTRIES = frozenset({"state", "job.json", "code", "inputs", "stdout.log", "stderr.log"})


def stat_fields(pid: int) -> "list[str] | None":
    """The fields of /proc/PID/stat from the third (state) on; None where the process is gone or a zombie."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return None
    return None if not fields or fields[0] in "ZX" else fields


def identity(pid: int) -> "dict[str, object] | None":
    """What tells a process from every other of the same number: start time in clock ticks, the boot, and whose numbers they are."""
    fields = stat_fields(pid)
    return None if fields is None else {"pid": pid, "start_time": int(fields[19]), "boot_id": boot_id(), "pid_namespace": pid_namespace()}


def boot_id() -> str:
    """What tells this machine, since it was started, from every other."""
    with open("/proc/sys/kernel/random/boot_id") as file:
        return file.read().strip()


def pid_namespace() -> "str | None":
    """Within which a number names a process: containers of one machine share its boot, and each counts for itself. None where the kernel has none."""
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return None


def is_here(known: "dict[str, object]") -> bool:
    """Can a process of this identity be looked for from here? One that was written down by an older launcher names no namespace."""
    return known.get("boot_id") == boot_id() and known.get("pid_namespace") in (None, pid_namespace())


def is_alive(known: "dict[str, object]") -> bool:
    pid = int(str(known.get("pid") or 0))
    found = identity(pid) if pid > 1 and is_here(known) else None
    return found is not None and found["start_time"] == known.get("start_time")


def write_json(path: str, value: object, *, exclusive: bool = False) -> None:
    """Write a whole file or none, on disk before it is seen; FileExistsError where `exclusive` and it exists."""
    temporary = f"{path}.{os.getpid()}.tmp"
    with open(temporary, "w", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        json.dump(value, file)
        file.flush()
        os.fsync(file.fileno())
    try:
        if exclusive:
            os.link(temporary, path)
        else:
            os.rename(temporary, path)
    finally:
        if os.path.lexists(temporary):
            os.unlink(temporary)
    folder = os.open(os.path.dirname(path), os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)


def read_json(path: str) -> "dict[str, object] | None":
    try:
        with open(path) as file:
            value = json.load(file)
    except FileNotFoundError:
        return None
    return value if isinstance(value, dict) else None


def descendants(root: int, skip: "frozenset[int]" = frozenset()) -> "dict[int, list[str]]":
    """Every living process below `root` by parent, with its stat fields. Orphans come back to `root`, which is a sub-reaper."""
    children: dict[int, list[int]] = {}
    fields: dict[int, list[str]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            one = stat_fields(int(name))
            if one is not None:
                fields[int(name)] = one
                children.setdefault(int(one[1]), []).append(int(name))
    found: dict[int, list[str]] = {}
    todo = [root]
    while todo:
        for pid in children.get(todo.pop(), ()):
            todo.append(pid)
            if pid not in skip:
                found[pid] = fields[pid]
    return found


def signal_user(uid: int, number: int) -> None:
    """Signal every process of a user id at once, the only way that no fork can outrun."""
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
            os.kill(-1, number)
        finally:
            os._exit(0)
    os.waitpid(child, 0)


def marked(folder: str, uid: "int | None") -> "list[int]":
    """Processes of a run whose launcher is gone: by user id, else by the folder in their environment."""
    mark = b"LABSITE_RUN_DIR=" + os.fsencode(folder) + b"\0"
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid() or stat_fields(int(name)) is None:
            continue
        try:
            if uid is not None:
                with open(f"/proc/{name}/status") as file:
                    ours = any(line.startswith("Uid:") and str(uid) in line.split() for line in file)
            else:
                with open(f"/proc/{name}/environ", "rb") as binary:
                    ours = mark in binary.read() + b"\0"
        except OSError:
            continue
        if ours:
            found.append(int(name))
    return found


def launched(folder: str) -> "list[int]":
    """Launchers of a run folder that live, whether the folder is still there or not."""
    told = tuple(b"\0" + word + b"\0" + os.fsencode(folder) + b"\0" for word in (b"run", b"hold"))
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit() or stat_fields(int(name)) is None:
            continue
        try:
            with open(f"/proc/{name}/cmdline", "rb") as file:
                words = file.read()
        except OSError:
            continue
        words = words.rstrip(b"\0") + b"\0"  # one that was forked has room to spare behind its folder
        if words.endswith(told) and b"launcher.py\0" in words:
            found.append(int(name))
    return found


def size(folder: str, limit: int) -> int:
    """Bytes that the run has written below its folder; more than `limit` where it is too deep or has too many files to count."""
    total = files = 0
    if not os.path.isdir(folder):
        return 0
    for path, folders, names, handle in os.fwalk(folder, follow_symlinks=False):
        if path == folder:
            folders[:] = [name for name in folders if name not in OWN_ENTRIES]
            names = [name for name in names if name not in OWN_ENTRIES]
        files += len(names) + len(folders)
        if path.count("/") - folder.count("/") > MAX_DEPTH or files > MAX_FILES:
            return limit + 1
        for name in names:
            try:
                one = os.stat(name, dir_fd=handle, follow_symlinks=False)
            except OSError:
                continue
            total += max(one.st_size, one.st_blocks * 512)
        if total > limit:
            break
    return total
