"""The files that a machine without labsite needs to run attempts, and the copy of them below a pool's root."""

from functools import cache
from pathlib import Path

from runs.pools.arrive import PLACE, arrive, digest
from runs.pools.base import PoolError, in_short

TRAVELLING = (
    "base.py", "cell.py", "far.py", "folder.py", "isolation.py", "launcher.py", "listed.py", "local.py", "processes.py", "ray.py", "sampling.py",
    "scheduled.py", "scheduler.py", "schedulers.py", "slurm.py", "staging.py", "supervisor.py", "uids.py", "waiting.py",
)  # fmt: skip


@cache
def travelling() -> tuple[str, dict[str, str]]:
    """The files by name, and the hash that their copy is called by."""
    files = {name: Path(__file__).with_name(name).read_text(encoding="utf-8") for name in TRAVELLING}
    return digest(files), files


def bring(root: Path) -> Path:
    """The launcher below `root` on a file system that other machines share with this one, copied there where it is missing. Raises PoolError."""
    name, files = travelling()
    place = root / PLACE / name
    try:
        if not place.is_dir() and (problem := arrive(str(root), name, files, new=True)):
            raise PoolError(problem)
    except OSError as error:
        raise in_short("the launcher could not be brought to where the nodes see it", error) from error
    return place / "runs" / "pools" / "launcher.py"
