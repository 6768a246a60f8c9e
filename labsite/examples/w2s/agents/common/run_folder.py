"""The run folder, version 1, as the program inside it sees it: the job to read, the metrics, events and outputs to write.

Only the standard library. The program's working folder is `code`; `LABSITE_JOB` names `job.json`, else it is `../job.json`.
"""

import json
import math
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any


class JobError(Exception):
    """The job cannot be done as asked; the text says what is wrong and what would help."""


@dataclass(frozen=True)
class Input:
    slug: str
    kind: str
    version: str
    sha256: str
    folder: Path

    def files(self, ending: str) -> list[Path]:
        return sorted(path for path in self.folder.rglob(f"*{ending}") if path.is_file())


@dataclass(frozen=True)
class Job:
    folder: Path
    params: dict[str, Any]
    seed: int
    inputs: tuple[Input, ...]

    def number(self, name: str, default: float, low: float, high: float) -> float:
        """A parameter between `low` and `high`, both allowed. Raises JobError."""
        value = self.params.get(name, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            raise JobError(f"parameter {name} is {value!r}; it must be a number from {low:g} to {high:g}")
        return float(value)

    def whole(self, name: str, default: int, low: int, high: int) -> int:
        value = self.number(name, default, low, high)
        if value != int(value):
            raise JobError(f"parameter {name} is {value!r}; it must be a whole number")
        return int(value)

    def yes(self, name: str, default: bool) -> bool:
        value = self.params.get(name, default)
        if not isinstance(value, bool):
            raise JobError(f"parameter {name} is {value!r}; it must be true or false")
        return value

    def texts(self, name: str) -> list[str]:
        """A parameter that is a list of texts, empty where it is not given. Raises JobError."""
        value = self.params.get(name, [])
        if not isinstance(value, list) or not all(isinstance(entry, str) for entry in value):
            raise JobError(f"parameter {name} must be a list of texts")
        return value

    def asking(self, params: dict[str, Any]) -> "Job":
        """The same job as another run's parameters would have it."""
        return replace(self, params=params)

    def text(self, name: str, default: str) -> str:
        value = self.params.get(name, default)
        if not isinstance(value, str) or not value:
            raise JobError(f"parameter {name} is {value!r}; it must be text")
        return value

    def allow(self, *names: str) -> None:
        """Refuse parameters that this program does not have, so that a misspelt one is not ignored."""
        if unknown := sorted(set(self.params) - set(names)):
            raise JobError(f"unknown parameter {', '.join(unknown)}; there are {', '.join(names)}")

    def output(self, name: str) -> Path:
        folder = self.folder / "outputs"
        folder.mkdir(exist_ok=True)
        return folder / name

    def metric(self, key: str, value: float, step: int) -> None:
        number = float(value)
        spelled = number if math.isfinite(number) else "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"
        self._append("metrics.jsonl", {"key": key, "value": spelled, "step": step, "time": round(time.time(), 3)})

    def event(self, event_type: str, /, **fields: object) -> None:
        self._append("events.jsonl", {"type": event_type, **fields})

    def _append(self, name: str, line: dict[str, object]) -> None:
        # Opened for each line: what is written is on disk at once, and a reader never waits for a buffer.
        with (self.folder / name).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line, allow_nan=False) + "\n")


def read_job() -> Job:
    """The job of this run. Raises JobError where `job.json` is missing or not of schema labsite.job.v1."""
    path = Path(os.environ.get("LABSITE_JOB") or "../job.json").resolve()
    try:
        job = json.loads(path.read_text(encoding="utf-8"))
    except OSError as exc:
        raise JobError(f"cannot read the job file: {exc.strerror}") from exc
    except ValueError as exc:
        raise JobError(f"the job file is not JSON: {exc}") from exc
    if not isinstance(job, dict) or job.get("schema") != "labsite.job.v1":
        raise JobError("the job file is not of schema labsite.job.v1")
    params, seed = job.get("params", {}), job.get("seed")
    seed = 0 if seed is None else seed  # nobody named one: the same answer each time all the same
    if not isinstance(params, dict):
        raise JobError("params in the job file is not a mapping")
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**64:
        raise JobError(f"seed is {seed!r}; it must be a whole number from 0 to 2^64 - 1")
    try:
        inputs = tuple(
            Input(
                str(entry["slug"]), str(entry["kind"]), str(entry["version"]), str(entry["sha256"]), path.parent / "inputs" / entry["slug"]
            )
            for entry in job.get("inputs", [])
        )
    except (TypeError, KeyError) as exc:
        raise JobError("an input in the job file lacks slug, kind, version or sha256") from exc
    return Job(path.parent, params, seed, inputs)


def run(program: Callable[[Job], None]) -> None:
    """Carry out `program`. Exit code 0 when it is done, 2 with one last line on stderr when the job is refused."""
    try:
        job = read_job()
        program(job)
    except JobError as exc:
        print(f"refused: {exc}", file=sys.stderr)
        sys.exit(2)
    job.event("done", status="succeeded", reason="")
