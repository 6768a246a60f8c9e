"""Loaded before the settings: each of several processes has a folder of runs of its own, so that none takes away another's Python or folders."""

import os
from pathlib import Path

if (worker := os.environ.get("PYTEST_XDIST_WORKER")) and (runs := os.environ.get("LABSITE_RUNS")):
    own = Path(runs) / worker
    own.mkdir(mode=0o711, exist_ok=True)
    own.chmod(0o711)  # runs of other accounts go through it, as through the folder of `labsite.embedded.around`
    os.environ["LABSITE_RUNS"] = str(own)
