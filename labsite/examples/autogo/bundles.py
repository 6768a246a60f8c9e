"""Code bundles of the laboratory's agents: the agent's own folder and what all of them share, flat, as the run finds it in `code/`."""

from pathlib import Path

from labsite.examples.w2s import bundles as w2s

AGENTS = Path(__file__).resolve().parent / "agents"
COMMON = "common"
RUN_FOLDER = w2s.AGENTS / w2s.COMMON / "run_folder.py"
"""How a program sees its run folder is the same in every laboratory."""


def bundle_files(name: str) -> dict[str, bytes]:
    """File names and contents of the bundle in `agents/<name>`, sorted by name; the same files give the same bytes.

    Raises ValueError where there is no such bundle, or where it holds a file of a name that the shared files have too.
    """
    if name == COMMON or name not in {folder.name for folder in AGENTS.iterdir()}:
        raise ValueError(f"there is no bundle {name}")
    files: dict[str, bytes] = {}
    paths = (RUN_FOLDER, *AGENTS.joinpath(COMMON).glob("*.py"), *AGENTS.joinpath(name).glob("*.py"))
    for path in sorted(paths, key=lambda path: path.name):
        if path.name in files:
            raise ValueError(f"{path.name} stands both in {COMMON} and in {name}")
        files[path.name] = path.read_bytes()
    return files
