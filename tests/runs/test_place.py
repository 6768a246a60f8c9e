"""What a process loads that asks no other host."""

import os
import subprocess
import sys

from tests.runs.pools.laboratory import REPOSITORY

CODE = """
import sys
from labsite.wsgi import application
import runs.place, runs.urls, labsite.urls
print(sorted({"asyncssh", "runs.pools.ssh"} & set(sys.modules)))
"""


def test_a_web_process_does_not_load_the_ssh_library() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], cwd=REPOSITORY, env=dict(os.environ), capture_output=True, text=True, check=False)
    assert done.stdout == "[]\n", done.stderr
