"""A pool under test with a small store beside it: make an order from a script, wait for what should happen."""

import hashlib
import json
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from runs.pools.base import JSON, Observation, Order, Pool, StagedFile, StagedInput, Status

T = TypeVar("T")

DEADLINE_SECONDS = 15.0
LIMITS: Mapping[str, JSON] = {"wall_seconds": 30, "grace_seconds": 0.3, "log_bytes": 1 << 20, "output_bytes": 1 << 24, "memory_bytes": None}
REPOSITORY = Path(__file__).resolve().parents[3]


def wait_for(look: Callable[[], T | None], what: str) -> T:
    """Poll until `look` gives something; a failed test after the deadline."""
    until = time.monotonic() + DEADLINE_SECONDS
    while (found := look()) is None:
        assert time.monotonic() < until, f"waited {DEADLINE_SECONDS} s for {what}"
        time.sleep(0.01)
    return found


@dataclass
class Laboratory:
    """`pool` is under test; `spec` is what another process needs to open the same pool."""

    pool: Pool
    store: Path
    spec: dict[str, str]

    def order(self, script: str, *arguments: str, key: str = "", limits: Mapping[str, JSON] | None = None, **more: object) -> Order:
        files = (self.keep("main.py", script),)
        job: dict[str, JSON] = {"argv": ["python", "-I", "main.py", *arguments], "limits": {**LIMITS, **(limits or {})}}
        inputs, secrets = more.pop("inputs", ()), more.pop("secrets", {})
        job |= more  # type: ignore[arg-type]  # tests pass JSON
        return Order(key or f"lab-1-{uuid.uuid4().hex}", "wsone", job, files, inputs, secrets)  # type: ignore[arg-type]  # as above

    def keep(self, path: str, content: str) -> StagedFile:
        digest = hashlib.sha256(content.encode()).hexdigest()
        (self.store / digest).write_text(content)
        return StagedFile(path, self.store / digest, digest)

    def dataset(self, slug: str, content: str) -> StagedInput:
        return StagedInput(slug, (self.keep("table.csv", content),))

    def start(self, order: Order) -> Order:
        self.pool.submit(order)
        return order

    def look(self, order: Order) -> Observation:
        return self.pool.observe(order.workspace, order.key)

    def ended(self, order: Order) -> Observation:
        try:
            return wait_for(lambda: seen if (seen := self.look(order)).status == Status.EXITED else None, "the end of the attempt")
        except AssertionError as error:
            raise AssertionError(f"{error}; it is {self.look(order)}") from None

    def run(self, script: str, *arguments: str, **more: object) -> tuple[Order, Observation]:
        order = self.start(self.order(script, *arguments, **more))  # type: ignore[arg-type]  # passed on as it came
        return order, self.ended(order)

    def log(self, order: Order, name: str = "stdout.log") -> str:
        return self.pool.read(order.workspace, order.key, name, offset=0, limit=1 << 22).decode(errors="replace")

    def said(self, order: Order, word: str) -> None:
        """Wait until the run has printed `word`; its end without it fails at once."""

        def look() -> bool | None:
            seen = self.look(order)
            if word in self.log(order):
                return True
            assert seen.status != Status.EXITED, f"ended without {word!r}: {seen} {self.log(order)!r} {self.log(order, 'stderr.log')!r}"
            return None

        wait_for(look, f"{word!r} in the log")

    def clear(self) -> None:
        """End every attempt that a failed test left behind."""
        for folder in (Path(self.spec["root"]) / "runs").glob("*/[!.]*"):
            workspace, key = folder.parent.name, folder.name
            self.pool.cancel(workspace, key, grace_seconds=0)
            self.ended(Order(key, workspace, {}, (), (), {}))

    def folder(self, order: Order) -> Path:
        return Path(self.spec["root"]) / "runs" / order.workspace / order.key

    def elsewhere(self, order: Order, then: str = "exit") -> subprocess.Popen[bytes]:
        """Submit from a process of its own, which ends or kills itself afterwards."""
        files = [[one.path, str(one.source), one.sha256] for one in order.code]
        call = {**self.spec, "key": order.key, "workspace": order.workspace, "job": order.job, "code": files, "then": then}
        command = [sys.executable, "-m", "tests.runs.pools.submitter", json.dumps(call)]
        return subprocess.Popen(command, cwd=REPOSITORY)


def alive(token: str) -> list[int]:
    """Living processes with `token` on their command line."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if token.encode() in (path / "cmdline").read_bytes():
                found.append(int(path.name))
        except OSError:
            continue
    return found
