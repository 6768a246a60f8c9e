"""A test has the same name in each process that collects it.

The tests are dealt out to several processes, which must agree on what there is: a name made from the clock, an
address or the order of a set stops the whole run, and only now and then.
"""

import os
import subprocess
import sys

import pytest

from tests.rules.test_files import ROOT


@pytest.mark.timeout(120)
def test_another_process_gives_every_test_the_same_name(request: pytest.FixtureRequest) -> None:
    here = {item.nodeid for item in request.session.items}
    # Another order of sets and dictionaries' hashes, and seconds later than the collection of this process.
    seed = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"
    answer = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-n0", "-p", "no:cacheprovider", "tests"],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    there = set(answer.stdout.splitlines())
    assert not here - there, f"{sorted(here - there)[:5]}\n{answer.stdout[-500:]}"
