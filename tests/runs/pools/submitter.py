"""Another labsite process that submits: `python -m tests.runs.pools.submitter JSON`, and then exits or is killed."""

import json
import os
import signal
import sys
from pathlib import Path

from runs.pools.base import Order, StagedFile
from runs.pools.isolation import Isolation
from runs.pools.local import LocalPool

if __name__ == "__main__":
    call = json.loads(sys.argv[1])
    pool = LocalPool(Path(call["root"]), Isolation(call["isolation"]), [Path(call["hidden"])], None)
    code = tuple(StagedFile(path, Path(source), digest) for path, source, digest in call["code"])
    pool.submit(Order(call["key"], call["workspace"], call["job"], code, (), {}))
    if call["then"] == "die":
        os.kill(os.getpid(), signal.SIGKILL)
