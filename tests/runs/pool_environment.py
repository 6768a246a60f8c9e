"""The environment of pools, with numpy, where every account can run it: fixtures of tests in which real agents learn."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings

from runs.pools.folder import remove_tree
from tests.examples.autogo.bundle import pool_python

SYSTEM_PYTHON = "/usr/bin/python3"


@pytest.fixture(scope="module")
def environment() -> Iterator[Path]:
    yield from made_environment()


def made_environment() -> Iterator[Path]:
    """A Python with the numpy of the local pool, where every account can run it: what an operator sets up on a host."""
    question = "import sys, numpy, os; print(*sys.version_info[:2], os.path.dirname(os.path.dirname(numpy.__file__)))"
    try:
        done = subprocess.run([pool_python(), "-c", question], capture_output=True, text=True, check=True, timeout=120)
        *version, packages = done.stdout.split()
        asked = [SYSTEM_PYTHON, "-c", "import sys; print(*sys.version_info[:2])"]
        same = subprocess.run(asked, capture_output=True, text=True, check=True, timeout=120).stdout.split() == version
    except (OSError, subprocess.CalledProcessError):
        same = False
    if not same:
        pytest.skip(f"needs a pool's Python with numpy, and {SYSTEM_PYTHON} of its version for accounts that may not see it")
    folder = Path(tempfile.mkdtemp(prefix="labsite-python-", dir="/var/lib" if os.getuid() == 0 else None))
    folder.chmod(0o755)
    subprocess.run([SYSTEM_PYTHON, "-m", "venv", "--without-pip", str(folder)], check=True)
    (target,) = folder.glob("lib/python3*/site-packages")
    for name in ("numpy", "numpy.libs"):
        shutil.copytree(Path(packages) / name, target / name)
    yield folder
    remove_tree(folder)


@pytest.fixture
def local_python(environment: Path) -> Iterator[None]:
    """The environment as that of the local pool."""
    link = settings.LABSITE_RUNS / "python"
    kept = link.readlink() if link.is_symlink() else None
    link.unlink(missing_ok=True)
    link.symlink_to(environment)
    yield
    link.unlink()
    if kept is not None:
        link.symlink_to(kept)
