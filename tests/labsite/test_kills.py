"""The drill of kills, in small: a whole installation on four real engines, its programs killed with runs in flight, nothing lost or doubled."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from labsite.embedded.home import CHECKOUT

KILLS = 20  # the first meet each engine (tests/rules/test_drill_shares.py)


@pytest.mark.timeout(1220)  # a whole installation, a scheduler and a cluster, twenty times taken over, with other tests beside it
def test_killed_programs_lose_and_double_nothing(tmp_path: Path) -> None:
    report = tmp_path / "kills.jsonl"
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("DATABASE_", "REDIS_", "LABSITE_", "DJANGO_"))}
    done = subprocess.run(
        [sys.executable, "tests/drills/kills.py", str(KILLS), "--seed", "4", "--report", str(report)],
        cwd=CHECKOUT, env={**environment, "PYTHONPATH": "."}, capture_output=True, text=True, timeout=1200, check=False,
    )  # fmt: skip
    said = f"{done.stdout}{done.stderr}"
    assert report.exists(), said
    lines = [json.loads(line) for line in report.read_text().splitlines()]
    assert [line["number"] for line in lines] == list(range(KILLS)), said
    assert [line for line in lines if line["faults"]] == [], "how long a recovery takes is judged where nothing runs beside it"
    assert {line["engine"] for line in lines} == {"local", "ssh", "slurm", "ray"}
    assert sum(line["in_flight"] for line in lines) >= KILLS
