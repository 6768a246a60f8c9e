"""Another labsite process that submits: `python -m tests.runs.pools.submitter JSON`, and then exits or is killed."""

import json
import os
import signal
import sys
from pathlib import Path

from runs.pools.base import Order, Pool, StagedFile
from runs.pools.isolation import Isolation
from runs.pools.local import LocalPool
from runs.pools.scheduled import ScheduledPool
from runs.pools.schedulers import scheduler_of
from runs.pools.ssh import SSHPool
from runs.pools.travelling import bring


def pool_of(spec: dict[str, str]) -> Pool:
    """The pool that a Laboratory's `spec` names."""
    if "port" in spec:
        keys = (Path(spec["host_key_file"]).read_text(), Path(spec["private_key_file"]).read_text())
        engine = {"kind": spec["scheduler"], "jobs_url": spec["jobs_url"]} if "scheduler" in spec else None
        place = ("127.0.0.1", int(spec["port"]), spec["user"], spec["root"])
        return SSHPool(*place, *keys, isolation=Isolation(spec["isolation"]), scheduler=engine)
    if "scheduler" in spec:
        root, settings = Path(spec["root"]), {**spec, "kind": spec["scheduler"]}
        hidden = [Path(spec["hidden"])]
        return ScheduledPool(root, Isolation(spec["isolation"]), hidden, None, scheduler_of(settings), launcher=bring(root))
    return LocalPool(Path(spec["root"]), Isolation(spec["isolation"]), [Path(spec["hidden"])], None)


if __name__ == "__main__":
    call = json.loads(sys.argv[1])
    pool = pool_of(call)
    code = tuple(StagedFile(path, Path(source), digest) for path, source, digest in call["code"])
    pool.submit(Order(call["key"], call["workspace"], call["job"], code, (), {}))
    if call["then"] == "die":
        os.kill(os.getpid(), signal.SIGKILL)
