"""The agents' bundles, for tests: their programs, run as a pool runs them; their modules, asked in the pool's Python."""

import csv
import hashlib
import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labsite.examples import ground
from labsite.examples.ground import AgentPlan
from labsite.examples.w2s import bundles, plan

STATED = {entry.slug for entry in plan.STATED}
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

    @property
    def model(self) -> Path:
        return self.output("model.json")


def pool_python() -> str:
    """The Python that the local pool runs programs with, whether or not it is there yet."""
    runs = os.environ.get("LABSITE_RUNS") or ("/var/lib/labsite" if os.getuid() == 0 else str(Path.home() / ".local/state/labsite"))
    return os.environ.get("LABSITE_POOL_PYTHON") or f"{runs}/python/bin/python"


def start(
    python: str,
    folder: Path,
    agent: AgentPlan,
    inputs: dict[str, Path],
    params: dict[str, Any] | None = None,
    *,
    seed: int = 1,
    changed: dict[str, Any] | None = None,
) -> Ended:
    """Make a run folder, unpack the agent's bundle into it, start its argv there and wait for the end. JSON files are given as artifacts,
    but for what people state; `changed` replaces entries of the job file."""
    (folder / "code").mkdir(parents=True)
    for name, content in bundles.bundle_files(agent.bundle).items():
        (folder / "code" / name).write_bytes(content)
    described = []
    for slug, path in inputs.items():
        (folder / "inputs" / slug).mkdir(parents=True)
        shutil.copyfile(path, folder / "inputs" / slug / path.name)
        kind = "artifact" if path.suffix == ".json" and slug not in STATED else "dataset"
        described.append({"slug": slug, "kind": kind, "version": "1", "sha256": sha256(path)})
    document = {"schema": "labsite.job.v1", "seed": seed, "params": params or {}, "inputs": described, **(changed or {})}
    (folder / "job.json").write_text(json.dumps(document))
    argv, environment = [python, *agent.argv[1:]], {**ENVIRONMENT, "LABSITE_JOB": str(folder / "job.json")}
    done = subprocess.run(argv, cwd=folder / "code", env=environment, capture_output=True, text=True, timeout=110, check=False)
    return Ended(folder, done.returncode, done.stdout, done.stderr)


def ask(python: str, bundle: str, program: str, question: Any = None) -> Any:
    """What `program` prints as JSON, run in the pool's Python with a bundle's modules; it finds the question as `question`."""
    head = "import json, sys\nsys.path[:0] = sys.argv[1:]\nquestion = json.loads(sys.stdin.read())\n"
    folders = [str(bundles.AGENTS / name) for name in (ground.COMMON, bundle)]
    argv = [python, "-c", head + program, *folders]
    done = subprocess.run(argv, input=json.dumps(question), env=ENVIRONMENT, capture_output=True, text=True, timeout=110, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def records(path: Path) -> dict[str, dict[str, str]]:
    """The rows of a table by their record ids."""
    with path.open(newline="") as file:
        return {row["record_id"]: row for row in csv.DictReader(file)}
