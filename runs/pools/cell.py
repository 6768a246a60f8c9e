"""Enter an isolation and become the run's command, in a process that the supervisor has forked. Standard library only.

A failure to start is written to the status pipe as `E<text>`. Under isolation `namespace` the command's wait status follows there as
`X<number>`, since process 1 of the namespace waits for it.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import stat

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = (1, 2, 4, 8, 32, 4096, 16384, 1 << 18)
CLONE_NEWNS, CLONE_NEWIPC, CLONE_NEWUSER, CLONE_NEWPID = (0x20000, 0x8000000, 0x10000000, 0x20000000)
PR_SET_PDEATHSIG, PR_SET_NO_NEW_PRIVS = 1, 38
SYS_MOUNT_SETATTR, AT_FDCWD, AT_RECURSIVE, MOUNT_ATTR_RDONLY = 442, -100, 0x8000, 1
INNER_UID = 65533  # what a root service is called inside a user namespace, so that exec drops every capability
# Folders of the machine that everybody may write to. A run gets private ones in their place, in memory, which counts as its own.
SHARED_SCRATCH = ("/tmp", "/var/tmp", "/dev/shm", "/run/lock")  # noqa: S108 -- not used as temporary folders: replaced by private ones
MOST_SCRATCH = 1 << 30  # bytes of each where the run has no limit of memory

libc = ctypes.CDLL(None, use_errno=True)


def checked(result: int, what: str) -> None:
    """Raise OSError with the errno of the libc call that returned `result`."""
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def mount(source: str, target: str, kind: str | None, flags: int, options: str = "") -> None:
    encoded = (source.encode(), os.fsencode(target), kind.encode() if kind else None, ctypes.c_ulong(flags), options.encode() or None)
    checked(libc.mount(*encoded), f"mount on {target}")


def set_read_only(path: str, *, on: bool, recursive: bool) -> None:
    """Set or clear the read-only flag of a mount (mount_setattr, Linux 5.12)."""
    attributes = (ctypes.c_uint64 * 4)(MOUNT_ATTR_RDONLY if on else 0, 0 if on else MOUNT_ATTR_RDONLY, 0, 0)
    flags = AT_RECURSIVE if recursive else 0
    arguments = (ctypes.c_long(AT_FDCWD), os.fsencode(path), ctypes.c_long(flags), ctypes.byref(attributes), ctypes.c_size_t(32))
    checked(libc.syscall(ctypes.c_long(SYS_MOUNT_SETATTR), *arguments), f"read-only {path}")


def inside(path: str, folders: list[str]) -> bool:
    return any(path == folder or path.startswith(folder.rstrip("/") + "/") for folder in folders)


def hide(paths: list[str], show: list[str], scratch: list[str], scratch_bytes: int) -> None:
    """Cover `paths` with empty folders, let `show` through again, and give the run `scratch` folders of its own, each of so many bytes at most.

    What is shown is held open first, so that it may lie below something that is covered.
    """
    # Only what exists when the run starts can be covered; labsite makes its folders before its first run.
    held = {path: os.open(path, os.O_PATH | os.O_CLOEXEC) for path in show}
    covered: list[str] = []
    for path in sorted({*paths, *scratch}):
        if not os.path.lexists(path) or inside(path, [one for one in covered if one not in scratch]):
            continue
        if not stat.S_ISDIR(os.stat(path).st_mode):
            mount("/dev/null", path, None, MS_BIND)
            continue
        mode = "1777" if path in scratch else "0755"
        mount(
            "tmpfs", path, "tmpfs", MS_NOSUID | MS_NODEV, f"mode={mode},size={scratch_bytes}" if path in scratch else f"mode={mode},size=1m"
        )
        covered.append(path)
    for path, handle in sorted(held.items()):
        os.makedirs(path, mode=0o755, exist_ok=True)
        mount(f"/proc/self/fd/{handle}", path, None, MS_BIND | MS_REC)
        os.close(handle)
    for path in covered:
        if path not in scratch:
            mount("none", path, None, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV)


def protect(folder: str) -> None:
    """Inside a user namespace the run has the service's own user id, so mounts keep it from what the folder's modes cannot."""
    for name in ("job.json", "code", "inputs", "stdout.log", "stderr.log"):
        path = os.path.join(folder, name)
        mount(path, path, None, MS_BIND)
    mount("tmpfs", os.path.join(folder, "state"), "tmpfs", MS_NOSUID | MS_NODEV, "mode=0700,size=4k")


def close_to_user(config: dict[str, object]) -> None:
    """A private view of the file system, as root, before the user id is given up."""
    checked(libc.unshare(CLONE_NEWNS | CLONE_NEWIPC), "unshare")
    mount("none", "/", None, MS_REC | MS_PRIVATE)
    hide(list(config["hide"]), list(config["show"]), list(SHARED_SCRATCH), int(str(config["scratch_bytes"])))  # type: ignore[call-overload]  # JSON lists of text
    mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, "hidepid=2")


def enter_namespaces() -> None:
    """User, mount, process and IPC namespaces for a service that is not root (or, in tests, is)."""
    uid, gid = os.getuid(), os.getgid()
    inner = INNER_UID if uid == 0 else uid
    checked(libc.unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC), "unshare")
    for name, value in (("setgroups", "deny"), ("uid_map", f"{inner} {uid} 1"), ("gid_map", f"{INNER_UID if gid == 0 else gid} {gid} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(value)


def close_to_namespace(config: dict[str, object]) -> None:
    folder = str(config["folder"])
    mount("none", "/", None, MS_REC | MS_PRIVATE)
    mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    hide(list(config["hide"]), list(config["show"]), list(SHARED_SCRATCH), int(str(config["scratch_bytes"])))  # type: ignore[call-overload]  # JSON lists of text
    if folder:
        protect(folder)
    set_read_only("/", on=True, recursive=True)
    for path in (*SHARED_SCRATCH, folder):
        if path and os.path.isdir(path):
            set_read_only(path, on=False, recursive=False)


def become(uid: int) -> None:
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def command(config: dict[str, object]) -> None:
    """Replace this process by the command; the last step, in the run's own isolation."""
    checked(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
    limits, argv, env = config["rlimits"], config["argv"], config["env"]
    if not isinstance(limits, dict) or not isinstance(argv, list) or not isinstance(env, dict):
        raise ValueError("the job is not one")
    for name, value in limits.items():
        number = getattr(resource, name)
        hard = resource.getrlimit(number)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(number, (value, value))
    os.umask(0o077)
    os.chdir(str(config["cwd"]))
    names = ["python", "python3"] if argv[0] == "python" else [argv[0]]
    for name in names:
        for path in [name] if "/" in name else [os.path.join(part, name) for part in env["PATH"].split(":")]:
            if os.path.isfile(path) and os.access(path, os.X_OK):
                # Python finds itself by argv[0], so it must be a name that the PATH has.
                os.execve(path, argv if name == argv[0] else [path, *argv[1:]], env)  # noqa: S606 -- a list, no shell
    raise OSError(f"command not found: {argv[0]}")


def report(status_fd: int, problem: BaseException) -> None:
    os.write(status_fd, f"E{problem}".encode(errors="replace")[:1000])


def init(config: dict[str, object], status_fd: int) -> int:
    """Process 1 of the namespace: start the command, tell how it ended, stay until no process is left."""
    checked(libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "death signal")
    close_to_namespace(config)
    main = os.fork()
    if main == 0:
        os.setsid()
        command(config)
    while True:
        try:
            pid, status = os.wait()
        except ChildProcessError:
            return 0
        if pid == main:
            os.write(status_fd, f"X{status}\n".encode())


def dies_with(launcher: int) -> bool:
    """Have the kernel kill this process with its parent; False where that has died already. A change of the user id would take it back, and so would
    a set-uid program, which no_new_privs keeps from being one."""
    checked(libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "death signal")
    return os.getppid() == launcher


def run(config: dict[str, object], launcher: int, status_fd: int) -> int:
    if config["isolation"] == "namespace":
        if not dies_with(launcher):
            return 1
        enter_namespaces()
        child = os.fork()
        if child == 0:
            return init(config, status_fd)
        os.waitpid(child, 0)
        return 0
    if config["isolation"] == "user":
        if config["mounts"]:
            close_to_user(config)
        become(int(str(config["uid"])))
    if not dies_with(launcher):
        return 1
    command(config)
    return 127


def trial(isolation: str) -> int:
    """Set the isolation up around /bin/true."""
    config = {"isolation": isolation, "mounts": True, "uid": INNER_UID, "folder": "", "hide": [], "show": [], "cwd": "/", "rlimits": {}}
    config.update({"scratch_bytes": 1 << 20, "argv": ["true"], "env": {"PATH": "/usr/bin:/bin"}})
    reader, writer = os.pipe()
    parent = os.getpid()
    if os.fork() == 0:
        os._exit(guarded(config, parent, writer))
    os.close(writer)
    status = os.wait()[1]
    said = os.read(reader, 1000).decode()
    return 0 if status == 0 and (said == "" if isolation == "user" else said == "X0\n") else 1


def guarded(config: dict[str, object], launcher: int, status_fd: int) -> int:
    try:
        return run(config, launcher, status_fd)
    except (OSError, ValueError) as problem:
        report(status_fd, problem)
        return 127


def main(config: dict[str, object], launcher: int, go_fd: int, status_fd: int, out_fd: int, err_fd: int) -> None:
    """The life of a freshly forked child: wait for the word, then become the command. Never returns."""
    code = 127
    try:
        for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
            signal.signal(number, signal.SIG_DFL)
        os.setsid()
        for source, target in ((os.open("/dev/null", os.O_RDONLY), 0), (out_fd, 1), (err_fd, 2)):
            os.dup2(source, target)
        if os.read(go_fd, 2) == b"GO":
            code = guarded(config, launcher, status_fd)
    finally:
        os._exit(code)
