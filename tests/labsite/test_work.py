"""`manage.py work`: how much of the processor a worker takes where there is too little for all."""

import os
import subprocess
import sys

PROGRAM = """
import os
from labsite.management.commands.work import AUTOGROUP, give_way
give_way(7)
print(os.nice(0))
print(AUTOGROUP.read_text() if AUTOGROUP.exists() else "nice 7")
"""


def test_a_worker_gives_way_as_a_process_and_as_a_session() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, start_new_session=True)
    process, session = done.stdout.split("\n", 1)
    assert int(process) == os.nice(0) + 7
    assert session.strip().endswith("nice 7")  # said by every kernel that weighs sessions
