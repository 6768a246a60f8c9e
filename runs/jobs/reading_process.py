"""Asking the process that opens files of datasets (runs/overlap/process.py): bounded in time and memory, without the surroundings of a worker."""

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from django.conf import settings

MOST_BYTES = 2 * 1024**3  # of address space, most of it NumPy's libraries; what it holds at a time is far less
OUT_OF_MEMORY = 3
MODULE = ["-m", "runs.overlap.process"]


@dataclass(frozen=True, slots=True)
class Answer:
    """`lines` that came whole, and `fault`, a clause, where the process did not come to its end."""

    lines: list[dict[str, Any]]
    fault: str = ""


def ask(request: dict[str, Any], *, seconds: float) -> Answer:
    """Run the process on one request. Never raises for what the files hold."""
    process = subprocess.Popen(  # noqa: S603  # our own module; paths and names travel on stdin
        [sys.executable, *MODULE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=settings.BASE_DIR,
        env={"PATH": os.environ.get("PATH", os.defpath), "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
        start_new_session=True,
    )
    sent = json.dumps({**request, "most_bytes": MOST_BYTES, "seconds": int(seconds)}).encode()
    fault = ""
    try:
        content, _ = process.communicate(sent, timeout=seconds)
    except subprocess.TimeoutExpired:
        fault = f"it took longer than {seconds / 60:.0f} minutes"
        _end(process)
        content, _ = process.communicate()
    finally:
        _end(process)
    lines = [json.loads(line) for line in content.split(b"\n")[:-1]]
    return Answer(lines, fault or _words(process.returncode))


def _words(code: int) -> str:
    if code == 0:
        return ""
    if code == OUT_OF_MEMORY:
        return "it needs more memory than is given to it"
    return f"the process that reads was ended by signal {-code}" if code < 0 else f"the process that reads failed with code {code}"


def _end(process: "subprocess.Popen[bytes]") -> None:
    if process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
