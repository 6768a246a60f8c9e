"""What these tests need besides labsite's own environment: the pool's Python, GNU Go, run folders."""

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from labsite.examples.autogo import plan
from labsite.examples.autogo.bundles import bundle_files
from tests.examples.autogo.bundle import ENVIRONMENT, lines


@pytest.fixture(scope="session")
def pool_python() -> str:
    runs = os.environ.get("LABSITE_RUNS") or ("/var/lib/labsite" if os.getuid() == 0 else str(Path.home() / ".local/state/labsite"))
    python = os.environ.get("LABSITE_POOL_PYTHON") or f"{runs}/python/bin/python"
    try:
        subprocess.run([python, "-c", "import numpy"], check=True, capture_output=True, timeout=120)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("needs a Python with numpy: `make run` makes one, or set LABSITE_POOL_PYTHON to one with requirements-pool.lock")
    return python


@pytest.fixture(scope="session")
def gnugo() -> str:
    program = shutil.which("gnugo", path=os.pathsep.join([os.environ.get("PATH", ""), "/usr/games", "/usr/local/games"]))
    if program is None:
        pytest.skip("needs GNU Go: `make system` installs it")
    return program


@dataclass
class Ended:
    """A run of an agent that has ended."""

    folder: Path
    code: int
    stdout: str
    stderr: str

    def events(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in lines(self.folder / "events.jsonl") if event["type"] == kind]

    def metric(self, key: str) -> list[float]:
        return [point["value"] for point in lines(self.folder / "metrics.jsonl") if point["key"] == key]

    def output(self, name: str) -> Path:
        return self.folder / "outputs" / name


@dataclass(frozen=True)
class Given:
    """An input of a run."""

    kind: str
    files: tuple[Path, ...]


Launch = Callable[..., Ended]


def dataset(*files: Path) -> Given:
    return Given("dataset", files)


def artifact(*files: Path) -> Given:
    return Given("artifact", files)


@pytest.fixture
def launch(pool_python: str, tmp_path: Path) -> Launch:
    return launcher(pool_python, tmp_path)


def launcher(pool_python: str, where: Path) -> Launch:
    """Make a run folder, unpack the agent's bundle into it, start its argv there and wait for the end."""
    count = iter(range(1000))

    def start(
        agent: plan.AgentPlan, inputs: dict[str, Given] | None = None, params: dict[str, Any] | None = None, *, seed: int = 7
    ) -> Ended:
        folder = where / f"run-{next(count)}"
        (folder / "code").mkdir(parents=True)
        for name, content in bundle_files(agent.bundle).items():
            (folder / "code" / name).write_bytes(content)
        described = []
        for slug, given in (inputs or {}).items():
            (folder / "inputs" / slug).mkdir(parents=True)
            for number, path in enumerate(given.files, start=1):
                shutil.copyfile(path, folder / "inputs" / slug / f"{number:06d}-{path.name}")
            digest = hashlib.sha256(b"".join(path.read_bytes() for path in given.files)).hexdigest()
            described.append({"slug": slug, "kind": given.kind, "version": "1", "sha256": digest})
        (folder / "job.json").write_text(
            json.dumps({"schema": "labsite.job.v1", "seed": seed, "params": params or {}, "inputs": described})
        )
        argv = [pool_python, *agent.argv[1:]]
        environment = {**ENVIRONMENT, "LABSITE_JOB": str(folder / "job.json")}
        done = subprocess.run(argv, cwd=folder / "code", env=environment, capture_output=True, text=True, timeout=120, check=False)
        return Ended(folder, done.returncode, done.stdout, done.stderr)

    return start
