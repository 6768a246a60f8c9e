"""Another labsite process that submits: `python -m tests.runs.pools.submitter JSON`, and then exits or is killed."""

import json
import os
import signal
import sys
from pathlib import Path

from runs.pools.base import Order, Pool, StagedFile
from runs.pools.isolation import Isolation
from runs.pools.local import LocalPool
from runs.pools.ssh import SSHPool


def pool_of(spec: dict[str, str]) -> Pool:
    """The pool that a Laboratory's `spec` names."""
    if "port" in spec:
        keys = (Path(spec["host_key_file"]).read_text(), Path(spec["private_key_file"]).read_text())
        return SSHPool("127.0.0.1", int(spec["port"]), spec["user"], spec["root"], *keys, isolation=Isolation(spec["isolation"]))
    return LocalPool(Path(spec["root"]), Isolation(spec["isolation"]), [Path(spec["hidden"])], None)


if __name__ == "__main__":
    call = json.loads(sys.argv[1])
    pool = pool_of(call)
    code = tuple(StagedFile(path, Path(source), digest) for path, source, digest in call["code"])
    pool.submit(Order(call["key"], call["workspace"], call["job"], code, (), {}))
    if call["then"] == "die":
        os.kill(os.getpid(), signal.SIGKILL)
