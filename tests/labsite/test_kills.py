"""The drill of kills, in small: a whole installation, a few of labsite's programs killed with runs in flight, nothing lost or doubled."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from labsite.embedded.home import CHECKOUT

KILLS = 5


@pytest.mark.timeout(620)  # a whole installation, five times taken over
def test_killed_programs_lose_and_double_nothing(tmp_path: Path) -> None:
    report = tmp_path / "kills.jsonl"
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("DATABASE_", "REDIS_", "LABSITE_", "DJANGO_"))}
    done = subprocess.run(
        [sys.executable, "tests/drills/kills.py", str(KILLS), "--seed", "4", "--report", str(report)],
        cwd=CHECKOUT, env={**environment, "PYTHONPATH": "."}, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    lines = [json.loads(line) for line in report.read_text().splitlines()]
    assert [line["number"] for line in lines] == list(range(KILLS))
    assert sum(line["in_flight"] for line in lines) >= KILLS
