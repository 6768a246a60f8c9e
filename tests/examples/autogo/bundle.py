"""Modules of the agents' bundles, for tests: imported here where they need the standard library alone, else asked in the pool's Python."""

import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from labsite.examples.autogo import bundles

COMMON = bundles.AGENTS / bundles.COMMON
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}


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
