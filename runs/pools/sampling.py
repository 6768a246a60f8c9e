"""What the processes of an attempt use, measured from time to time into `state/samples.jsonl`, in lines like those of metrics.jsonl.

Standard library only; part of the launcher. A sample costs one look through /proc, which the launcher takes anyway, and one short line a key.
Every `EVERY_SECONDS` at first; after `AT_ONE_PACE` samples half as often, and so on, so that a run of a week writes some thousands of lines.
What cannot be measured here has no line: it is absent, never 0.
"""

import contextlib
import importlib
import json
import os
import time

TYPE_CHECKING = False  # typing's own costs a launcher some milliseconds
if TYPE_CHECKING:
    import subprocess

PREFIX = "system/"  # of the keys; what a run writes under it is not taken in
EVERY_SECONDS = 5.0
AT_ONE_PACE = 360
GPU_TIMEOUT_SECONDS = 10.0
MAX_GPUS = 16
NVIDIA_SMI = ("/usr/bin/nvidia-smi", "/usr/local/bin/nvidia-smi", "/usr/lib/wsl/lib/nvidia-smi")
QUERY = ("--query-gpu=index,utilization.gpu,memory.used", "--format=csv,noheader,nounits")
MEBIBYTE = 1 << 20


class Sampler:
    """Writes samples of one attempt. `began` is the launcher's monotonic clock at the start, `has_gpus` whether GPUs were asked for."""

    def __init__(self, path: str, began: float, *, has_gpus: bool) -> None:
        self._path, self._began = path, began
        self._every, self._count = EVERY_SECONDS, 0
        self._next = began + EVERY_SECONDS
        self._before = (began, 0.0)
        self._tool = next((place for place in NVIDIA_SMI if os.access(place, os.X_OK)), None) if has_gpus else None
        self._asked: subprocess.Popen[bytes] | None = None
        self._asked_at = 0.0

    def is_due(self, now: float) -> bool:
        return now >= self._next

    def own(self) -> "frozenset[int]":
        """Process ids below the launcher that are ours, not the run's."""
        return frozenset({self._asked.pid}) if self._asked is not None else frozenset()

    def take(self, now: float, cpu_seconds: float, memory_bytes: int) -> None:
        """Write a sample: share of one core since the last one (200 is two cores busy), and resident memory now."""
        then, used = self._before
        self._before = (now, max(cpu_seconds, used))
        found: dict[str, float] = {"memory_bytes": memory_bytes}
        if now > then:
            found["cpu_percent"] = round(max(0.0, cpu_seconds - used) / (now - then) * 100, 1)
        self._write(now, found)
        self._count += 1
        if self._count % AT_ONE_PACE == 0:
            self._every *= 2
        self._next = now + self._every
        # Asking costs a process that sets itself up on every GPU: a third as often.
        if self._tool is not None and self._asked is None and self._count % 3 == 1:
            self._ask(now)

    def look_at_gpus(self, now: float) -> None:
        """Take the answer of nvidia-smi where it has come; never waits for it. One that does not answer is asked no more."""
        asked = self._asked
        if asked is None:
            return
        if asked.poll() is None:
            if now - self._asked_at > GPU_TIMEOUT_SECONDS:
                self.close()
                self._tool = None
            return
        self._asked = None
        if asked.stdout is not None:
            with asked.stdout as answer:
                self._write(now, parse_gpus(answer.read(65_536).decode(errors="replace")))

    def close(self) -> None:
        """End what was asked and has not answered."""
        if self._asked is not None:
            self._asked.kill()
            with contextlib.suppress(OSError, importlib.import_module("subprocess").TimeoutExpired):
                self._asked.wait(1)
            if self._asked.stdout is not None:
                self._asked.stdout.close()
            self._asked = None

    def _ask(self, now: float) -> None:
        module = importlib.import_module("subprocess")  # no launcher waits for it but one with GPUs
        no, pipe = module.DEVNULL, module.PIPE
        try:
            self._asked = module.Popen([str(self._tool), *QUERY], env={}, cwd="/", stdin=no, stdout=pipe, stderr=no)
            self._asked_at = now
        except OSError:
            self._tool = None

    def _write(self, now: float, found: "dict[str, float]") -> None:
        said = {"step": int(now - self._began), "time": round(time.time(), 3)}
        lines = "".join(json.dumps({"key": PREFIX + key, "value": value, **said}) + "\n" for key, value in sorted(found.items()))
        with contextlib.suppress(OSError):  # a full disk: a gap in the curve
            number = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            try:
                os.write(number, lines.encode())
            finally:
                os.close(number)


def parse_gpus(said: str) -> "dict[str, float]":
    """`gpu_<index>_percent` and `gpu_<index>_memory_bytes` from lines such as `0, 37, 10240` (percent, MiB); what reads `[N/A]` is left out.

    They are figures of the machine's GPUs, whoever uses them."""
    found: dict[str, float] = {}
    for line in said.splitlines()[:MAX_GPUS]:
        words = [word.strip() for word in line.split(",")]
        if len(words) != 3 or not words[0].isdecimal():
            continue
        for name, word, unit in (("percent", words[1], 1), ("memory_bytes", words[2], MEBIBYTE)):
            if word.isdecimal() and len(word) < 12:
                found[f"gpu_{int(words[0])}_{name}"] = int(word) * unit
    return found
