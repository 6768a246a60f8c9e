"""The agents' bundles, for tests: their modules, imported here where they need the standard library alone, else asked in the pool's Python;
their programs, run as a pool runs them."""

import hashlib
import importlib
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labsite.examples import ground
from labsite.examples.autogo import bundles
from labsite.examples.ground import AgentPlan

COMMON = bundles.AGENTS / ground.COMMON
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}


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


def dataset(*files: Path) -> Given:
    return Given("dataset", files)


def artifact(*files: Path) -> Given:
    return Given("artifact", files)


def pool_python() -> str:
    """The Python that the local pool runs programs with, whether or not it is there yet."""
    runs = os.environ.get("LABSITE_RUNS") or ("/var/lib/labsite" if os.getuid() == 0 else str(Path.home() / ".local/state/labsite"))
    return os.environ.get("LABSITE_POOL_PYTHON") or f"{runs}/python/bin/python"


def start(
    python: str,
    folder: Path,
    agent: AgentPlan,
    inputs: dict[str, Given] | None = None,
    params: dict[str, Any] | None = None,
    *,
    seed: int = 7,
    seconds: float = 110,
) -> Ended:
    """Make a run folder, unpack the agent's bundle into it, start its argv there and wait for the end."""
    (folder / "code").mkdir(parents=True)
    for name, content in bundles.bundle_files(agent.bundle).items():
        (folder / "code" / name).write_bytes(content)
    described = []
    for slug, given in (inputs or {}).items():
        (folder / "inputs" / slug).mkdir(parents=True)
        for number, path in enumerate(given.files, start=1):
            shutil.copyfile(path, folder / "inputs" / slug / f"{number:06d}-{path.name}")
        digest = hashlib.sha256(b"".join(path.read_bytes() for path in given.files)).hexdigest()
        described.append({"slug": slug, "kind": given.kind, "version": "1", "sha256": digest})
    (folder / "job.json").write_text(json.dumps({"schema": "labsite.job.v1", "seed": seed, "params": params or {}, "inputs": described}))
    argv = [python, *agent.argv[1:]]
    environment = {**ENVIRONMENT, "LABSITE_JOB": str(folder / "job.json")}
    done = subprocess.run(argv, cwd=folder / "code", env=environment, capture_output=True, text=True, timeout=seconds, check=False)
    return Ended(folder, done.returncode, done.stdout, done.stderr)


def load(name: str) -> Any:
    """A shared module, as a program of a bundle imports it: by its bare name, among its neighbours."""
    sys.path.insert(0, str(COMMON))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(COMMON))


def ask(python: str, bundle: str, program: str, question: Any = None) -> Any:
    """What `program` prints as JSON, run in the pool's Python with a bundle's modules; it finds the question as `question`."""
    head = "import json, sys\nsys.path[:0] = sys.argv[1:]\nquestion = json.loads(sys.stdin.read())\n"
    folders = [str(folder) for folder in (COMMON, bundles.AGENTS / bundle, bundles.RUN_FOLDER.parent)]
    done = subprocess.run(
        [python, "-c", head + program, *folders], input=json.dumps(question), env=ENVIRONMENT, capture_output=True, text=True, timeout=120,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
