"""Where the code of the laboratory's agents stands."""

from pathlib import Path

from labsite.examples import ground
from labsite.examples.w2s import bundles as w2s

AGENTS = Path(__file__).resolve().parent / "agents"
RUN_FOLDER = w2s.AGENTS / ground.COMMON / "run_folder.py"  # how a program sees its run folder is the same in every laboratory


def bundle_files(name: str) -> dict[str, bytes]:
    """The bundle in `agents/<name>`, as `ground.bundle_files` makes it."""
    return ground.bundle_files(AGENTS, name, RUN_FOLDER)
