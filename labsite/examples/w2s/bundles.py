"""Code bundles of the laboratory's agents: the agent's own folder and what all of them share, flat, as the run finds it in `code/`."""

from pathlib import Path

AGENTS = Path(__file__).resolve().parent / "agents"
MAKE_TABLE = Path(__file__).resolve().parent / "make_table.py"
COMMON = "common"


def bundle_files(name: str) -> dict[str, bytes]:
    """File names and contents of the bundle in `agents/<name>`, sorted by name; the same files give the same bytes.

    Raises ValueError where there is no such bundle, or where it holds a file of a name that the shared files have too.
    """
    if name == COMMON or name not in {folder.name for folder in AGENTS.iterdir()}:
        raise ValueError(f"there is no bundle {name}")
    files: dict[str, bytes] = {}
    for path in sorted((*AGENTS.joinpath(COMMON).glob("*.py"), *AGENTS.joinpath(name).glob("*.py")), key=lambda path: path.name):
        if path.name in files:
            raise ValueError(f"{path.name} stands both in {COMMON} and in {name}")
        files[path.name] = path.read_bytes()
    return files
