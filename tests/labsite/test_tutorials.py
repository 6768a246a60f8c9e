"""Every command of both tutorials (docs/laboratories.md), on a labsite that is started for them.

The laboratories are made by their own commands, of those runs alone that the tutorials speak of and without their pauses; the whole first start,
and the README's commands on it, is `tests/drills/tutorials.py`, which takes minutes.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from labsite.embedded import pool_python
from tests.labsite.plain_account import PYTHON
from tests.labsite.started import Started, read, signed_in
from tests.tutorial_blocks import blocks

W2S = """
from dataclasses import replace
from types import MappingProxyType
from labsite.examples.w2s import rounds
teacher = replace(rounds.TEACHERS[0], params=MappingProxyType({**rounds.TEACHERS[0].params, "seconds_per_epoch": 0}))
rounds.UNTIL_FROZEN = (teacher, rounds.CEILINGS[0], rounds.FINDING)
rounds.ONCE_FROZEN = (rounds.LABELLING,)
rounds.AT_LAST = ()
"""
AUTOGO = """
from labsite.examples.autogo import plan
games = plan.SELF_PLAY_RUNS[0]
plan.SELF_PLAY_RUNS, plan.ARENA_RUN = (games, games), games
"""
MAKE = """
import sys
import django
django.setup()
{plan}
from django.core.management import call_command
call_command("example", {name!r})
"""


@pytest.fixture
def started() -> Iterator[Started]:
    with tempfile.TemporaryDirectory(prefix="labsite-tutorial-", ignore_cleanup_errors=True) as own:
        place = Path(own)
        place.chmod(0o711)
        started = Started(None, place)
        give_packages(place / "runs" / "python")
        yield started


def give_packages(python: Path) -> None:
    """What the bundles of the laboratories run on, copied from the environment of their own tests to where any user of runs may read it."""
    tested = Path(os.environ.get("LABSITE_POOL_PYTHON", "")).parent.parent / "lib" / f"python3.{sys.version_info.minor}" / "site-packages"
    if not (tested / "sklearn").exists():
        pytest.skip(
            "needs a Python with scikit-learn: `make test` makes one, or set LABSITE_POOL_PYTHON to one with requirements-pool.lock"
        )
    shutil.rmtree(python.resolve())
    subprocess.run([pool_python.base_python(), "-m", "venv", "--without-pip", str(python.resolve())], check=True)
    here = next((python / "lib").glob("python3.*")) / "site-packages"
    if here.parent.name != tested.parent.name:
        pytest.skip(f"users of runs may start {here.parent.name} only, and the packages are for {tested.parent.name}")
    shutil.copytree(tested, here, symlinks=True, dirs_exist_ok=True, ignore=shutil.ignore_patterns("pip", "tests", "__pycache__"))


@pytest.mark.timeout(700)
def test_every_command_of_both_tutorials(started: Started) -> None:
    wanted = blocks()
    assert len(wanted) >= 12
    with started.up() as block:
        passwords = started.says_everything(block)
        makers = [
            subprocess.Popen(
                [PYTHON, "-c", MAKE.format(plan=plan, name=name)], cwd=started.checkout, env=started.environment,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            )
            for name, plan in (("w2s", W2S), ("autogo", AUTOGO))
        ]  # fmt: skip
        for maker in makers:
            said = maker.communicate(timeout=200)[0]
            assert maker.returncode == 0, said
        environment = started.environment | {"LABSITE": started.url, "no_proxy": "*"}
        script = "\n".join(["set -euo pipefail", *wanted])
        done = subprocess.run(
            ["bash", "-c", script], cwd=started.checkout, env=environment, capture_output=True, text=True, timeout=200, check=False
        )  # fmt: skip
        assert done.returncode == 0, f"{done.stdout[-3000:]}{done.stderr[-3000:]}"
        page = read(
            signed_in(started.url, "researcher", passwords["researcher"]), f"{started.url}/workspaces/w2s-medqa/runs/?status=succeeded"
        )
        assert "judge-weak-labels" in page
