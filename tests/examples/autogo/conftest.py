"""What these tests need besides labsite's own environment: the pool's Python, GNU Go, run folders."""

import os
import shutil
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from labsite.examples.ground import AgentPlan
from tests.examples.autogo import bundle
from tests.examples.autogo.bundle import Ended, Given
from tests.runs.pool_environment import environment, local_python  # noqa: F401  # fixtures

Launch = Callable[..., Ended]


@pytest.fixture(scope="session")
def pool_python() -> str:
    python = bundle.pool_python()
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


@pytest.fixture(scope="session")
def launch(pool_python: str, tmp_path_factory: pytest.TempPathFactory) -> Launch:
    """Run an agent in a folder of its own, as `bundle.start` does."""

    def start(agent: AgentPlan, inputs: dict[str, Given] | None = None, params: dict[str, Any] | None = None, *, seed: int = 7) -> Ended:
        return bundle.start(pool_python, tmp_path_factory.mktemp("run") / "folder", agent, inputs, params, seed=seed)

    return start
