"""One attempt from fork to its end, in one thread around one poll(). Standard library only; run by launcher.py."""

import contextlib
import os
import resource
import select
import signal
import time

from runs.pools import cell
from runs.pools.processes import descendants, identity, read_json, signal_user, size, write_json
from runs.pools.sampling import Sampler

TICK_SECONDS = 0.2
HEARTBEAT_SECONDS = 1.0
MAX_SAMPLES = 200
PAGE = resource.getpagesize()
CLOCK = os.sysconf("SC_CLK_TCK")
# Which GPUs of a machine an engine (Slurm, Ray) has given to an attempt that asked for some; it is said to the launcher, in these.
ASSIGNED = ("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ZE_AFFINITY_MASK")


class Log:
    """One of the run's streams, kept up to `limit` bytes; what follows is read and dropped, so that the run never waits."""

    def __init__(self, path: str, pipe: int, limit: int) -> None:
        self.pipe, self.left, self.limit, self.dropped = pipe, limit, limit, 0
        self.file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC)
        os.set_blocking(pipe, False)

    def say(self, text: str) -> None:
        with contextlib.suppress(OSError):  # a full disk: the count stands in exit.json as well
            os.write(self.file, f"\n[labsite] {text}\n".encode())

    def drain(self, rounds: int = 16) -> bool:
        """Take what is there; False at the end of the stream."""
        for _ in range(rounds):
            try:
                chunk = os.read(self.pipe, 65536)
            except BlockingIOError:
                return True
            if not chunk:
                return False
            kept = 0
            if self.left > 0:
                try:
                    kept = os.write(self.file, chunk[: self.left])
                except OSError:
                    kept = 0
                self.left -= kept
                if self.left == 0:
                    self.say(f"log limit of {self.limit} bytes reached, what follows is dropped")
            self.dropped += len(chunk) - kept
        return True

    def close(self) -> None:
        self.drain(1024)
        if self.dropped:
            self.say(f"{self.dropped} bytes dropped")
        os.close(self.file)
        os.close(self.pipe)


class Supervisor:
    """One attempt from fork to exit.json, in one thread around one poll()."""

    def __init__(self, folder: str, start: "dict[str, object]", job: "dict[str, object]") -> None:
        self.folder, self.start, self.job = folder, start, job
        limits = job.get("limits")
        self.limits: dict[str, float] = {k: v for k, v in limits.items() if v is not None} if isinstance(limits, dict) else {}
        self.uid = start.get("uid")
        self.namespaced = start["isolation"] == "namespace"
        self.status: int | None = None
        self.reason = ""
        self.kill_at: float | None = None
        self.peak = 0
        self.samples: list[list[float]] = []
        self.sample_every = self.next_heartbeat = self.next_sample = self.next_size = 0.0
        self.cell_said = b""
        self.cell_reaped = False
        self.is_childless = False
        self.problem = ""

    def path(self, *parts: str) -> str:
        return os.path.join(self.folder, *parts)

    def launch(self) -> None:
        """Fork the cell, write down who it is, then let it go: a launcher that dies before leaves nothing running."""
        (go_r, go_w), (status_r, status_w), (out_r, out_w), (err_r, err_w) = [os.pipe() for _ in range(4)]
        config, launcher = self.config(), os.getpid()
        self.cell = os.fork()
        if self.cell == 0:
            os.close(go_w)
            cell.main(config, launcher, go_r, status_w, out_w, err_w)
        for number in (go_r, status_w, out_w, err_w):
            os.close(number)
        known = identity(self.cell)
        write_json(self.path("state", "pid.json"), {**(known or {}), "pgid": self.cell, "launcher": identity(os.getpid())})
        self.logs = [
            Log(self.path("stdout.log"), out_r, int(self.limits.get("log_bytes", 1 << 40))),
            Log(self.path("stderr.log"), err_r, int(self.limits.get("log_bytes", 1 << 40))),
        ]
        self.started_at, self.began = time.time(), time.monotonic()
        resources = self.job.get("resources")
        has_gpus = isinstance(resources, dict) and bool(resources.get("gpus"))
        self.sampler = Sampler(self.path("state", "samples.jsonl"), self.began, has_gpus=has_gpus)
        os.write(go_w, b"GO")
        os.close(go_w)
        os.set_blocking(status_r, False)
        self.status_pipe = status_r

    def config(self) -> "dict[str, object]":
        resources = self.job.get("resources")
        slots, gpus = (resources.get("slots"), resources.get("gpus")) if isinstance(resources, dict) else (None, None)
        declared = self.job.get("env")
        env = {"OMP_NUM_THREADS": str(slots or 1), **(declared if isinstance(declared, dict) else {})}
        env.update({"LABSITE_RUN_DIR": self.folder, "LABSITE_JOB": self.path("job.json"), "PATH": str(self.start["path"])})
        env.update({"HOME": self.path("home"), "TMPDIR": self.path("tmp")})
        if gpus:
            env.update({name: os.environ[name] for name in ASSIGNED if name in os.environ})
        rlimits = {"RLIMIT_CORE": 0}
        if "output_bytes" in self.limits:
            rlimits["RLIMIT_FSIZE"] = int(self.limits["output_bytes"]) + (1 << 20)
        if self.uid is not None:
            rlimits["RLIMIT_NPROC"] = 4096
        config = {name: self.start[name] for name in ("isolation", "uid", "mounts", "hide", "show")}
        config["scratch_bytes"] = max(1 << 20, int(self.limits.get("memory_bytes", cell.MOST_SCRATCH)))
        config.update({"folder": self.folder, "cwd": self.path(str(self.job.get("cwd") or "code")), "argv": self.job["argv"]})
        return {**config, "env": env, "rlimits": rlimits}

    def own(self) -> "frozenset[int]":
        """Processes of the cell that are not the run's: two under namespaces."""
        if not self.namespaced:
            return frozenset()
        below = descendants(self.cell)
        return frozenset({self.cell, *(pid for pid, fields in below.items() if int(fields[1]) == self.cell)})

    def reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                self.is_childless = (
                    True  # orphans come to us as well: nothing of the run lives, for certain and without a look through /proc
                )
                break
            if pid == 0:
                break
            if pid == self.cell:
                self.cell_reaped = True
                self.cell_ended(status)
        with contextlib.suppress(BlockingIOError):
            self.cell_said += os.read(self.status_pipe, 4096)
        if self.status is None and self.cell_said.startswith(b"X") and b"\n" in self.cell_said:
            self.status = int(self.cell_said[1 : self.cell_said.index(b"\n")])

    def cell_ended(self, status: int) -> None:
        with contextlib.suppress(BlockingIOError):
            self.cell_said += os.read(self.status_pipe, 4096)
        if self.cell_said.startswith(b"E"):
            self.problem = self.cell_said[1:].decode(errors="replace")
            self.status = 127 << 8
        elif self.status is None:
            said = self.cell_said.startswith(b"X") and b"\n" in self.cell_said
            self.status = int(self.cell_said[1 : self.cell_said.index(b"\n")]) if said else status

    def scratch(self) -> int:
        """Bytes in the run's private scratch folders, which lie in memory: seen through the cell, which sees them as the run does. Until the cell
        has covered a folder it sees the machine's own there, whose disk is not the run's memory."""
        if not (self.namespaced or self.start["mounts"]) or self.cell_reaped:
            return 0
        used = {}
        for path in cell.SHARED_SCRATCH:
            try:
                device = os.stat(f"/proc/{self.cell}/root{path}").st_dev
                if device == os.stat(path).st_dev:
                    continue
                seen = os.statvfs(f"/proc/{self.cell}/root{path}")
            except OSError:
                continue  # the machine has no such folder, or the cell has just ended
            used[device] = (seen.f_blocks - seen.f_bfree) * seen.f_frsize
        return sum(used.values())

    def measure(self, now: float) -> None:
        living = descendants(os.getpid(), self.own() | self.sampler.own())
        memory = sum(int(fields[21]) for fields in living.values()) * PAGE + self.scratch()
        self.peak = max(self.peak, memory)
        if memory > self.limits.get("memory_bytes", float("inf")):
            self.end("memory_limit", 0)
        self.sampler.look_at_gpus(now)
        if now >= self.next_sample or self.sampler.is_due(now):
            used = resource.getrusage(resource.RUSAGE_CHILDREN)
            cpu = used.ru_utime + used.ru_stime + sum(sum(map(int, fields[11:15])) for fields in living.values()) / CLOCK
            if self.sampler.is_due(now):
                self.sampler.take(now, cpu, memory)
        if now >= self.next_sample:
            self.samples.append([round(now - self.began, 2), round(cpu, 2), memory])
            if len(self.samples) >= MAX_SAMPLES:
                self.samples = self.samples[::2]
                self.sample_every = max(1.0, self.sample_every * 2)
            self.next_sample = now + max(1.0, self.sample_every)

    def tick(self, now: float) -> None:
        """Everything that is looked at from time to time: cancel, limits, heartbeat, use."""
        if self.kill_at is None and self.status is None:
            asked = read_json(self.path("state", "cancel.json"))
            if asked is not None:
                self.end("cancelled", float(str(asked.get("grace_seconds", 0))))
            elif now - self.began > self.limits.get("wall_seconds", float("inf")):
                self.end("wall_limit", self.limits.get("grace_seconds", 0))
        if now >= self.next_size and "output_bytes" in self.limits:
            if size(self.folder, int(self.limits["output_bytes"])) > self.limits["output_bytes"]:
                self.end("output_limit", 0)
            self.next_size = now + max(0.5, 20 * (time.monotonic() - now))
        if now >= self.next_heartbeat:
            self.beat()
            self.next_heartbeat = now + HEARTBEAT_SECONDS
            self.measure(now)
        elif "memory_bytes" in self.limits:
            self.measure(now)

    def beat(self) -> None:
        """Say that it lives: what a lost launcher has used is counted up to its last beat."""
        try:
            os.utime(self.path("state", "heartbeat"))
        except FileNotFoundError:
            self.end("cancelled", 0)  # somebody has removed the folder under the run

    def end(self, reason: str, grace_seconds: float) -> None:
        """Ask everything to stop now, and kill what is left after the grace; the first reason stands."""
        if self.kill_at is not None:
            return
        self.reason = reason
        self.kill_at = time.monotonic() + grace_seconds
        self.signal_all(signal.SIGTERM)

    def signal_all(self, number: int) -> None:
        if number == signal.SIGKILL and self.uid is not None:
            signal_user(int(str(self.uid)), number)
        # Killing process 1 of a namespace makes the kernel end all of it, which no fork outruns.
        for pid in descendants(os.getpid(), frozenset() if number == signal.SIGKILL else self.own()):
            try:
                os.kill(pid, number)
            except OSError:
                continue

    def watch(self) -> None:
        """Until no process of the run is left."""
        wake_r, wake_w = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wake_w, warn_on_full_buffer=False)
        poll = select.poll()
        for log in self.logs:
            poll.register(log.pipe, select.POLLIN)
        for number in (wake_r, self.status_pipe):
            poll.register(number, select.POLLIN)
        self.beat()
        next_tick = time.monotonic() + TICK_SECONDS  # a run that ends at once is not looked for among all processes
        while True:
            self.take_in(poll, wake_r)
            self.reap()
            if self.status is not None:
                if self.cell_reaped and (self.is_childless or not descendants(os.getpid(), self.sampler.own())):
                    self.sampler.close()
                    return
                self.end("exit", self.limits.get("grace_seconds", 0))
            now = time.monotonic()
            if now >= next_tick:
                self.tick(now)
                next_tick = now + TICK_SECONDS
            if self.kill_at is not None and now >= self.kill_at:
                self.signal_all(signal.SIGKILL)

    def take_in(self, poll: select.poll, wake_r: int) -> None:
        """Wait for the next output, the next death or the next tick."""
        for number, event in poll.poll(50 if self.kill_at is not None else int(TICK_SECONDS * 1000)):
            if number == wake_r:
                os.read(wake_r, 4096)
            elif number == self.status_pipe:
                if event & select.POLLHUP and not event & select.POLLIN:
                    poll.unregister(number)
            elif not next(log for log in self.logs if log.pipe == number).drain():
                poll.unregister(number)

    def conclude(self) -> "dict[str, object]":
        for log in self.logs:
            if self.problem and log is self.logs[1]:
                log.say(f"the command did not start: {self.problem}")
            log.close()
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        status = self.status or 0
        outputs = self.limits.get("output_bytes")
        if self.reason in ("", "exit"):
            self.reason = "output_limit" if outputs is not None and size(self.folder, int(outputs)) > outputs else "exit"
        return {
            "code": os.WEXITSTATUS(status) if os.WIFEXITED(status) else None,
            "signal": os.WTERMSIG(status) if os.WIFSIGNALED(status) else None,
            "started_at": self.started_at,
            "ended_at": self.started_at + time.monotonic() - self.began,  # what is charged no clock that is set may change
            "reason": self.reason,
            "peak_memory_bytes": max(self.peak, used.ru_maxrss * 1024),
            "cpu_seconds": round(used.ru_utime + used.ru_stime, 3),
            "samples": self.samples,
            "dropped_bytes": {"stdout.log": self.logs[0].dropped, "stderr.log": self.logs[1].dropped},
            "problem": self.problem,
        }
