"""Where the code of the laboratory's agents stands."""

from pathlib import Path

from labsite.examples import ground

AGENTS = Path(__file__).resolve().parent / "agents"
OBJECTS = Path(__file__).resolve().parent / "objects"  # what people state: the judge's rubric, the rule for trusted examples
MAKE_TABLE = Path(__file__).resolve().parent / "make_table.py"


def bundle_files(name: str) -> dict[str, bytes]:
    """The bundle in `agents/<name>`, as `ground.bundle_files` makes it."""
    return ground.bundle_files(AGENTS, name)
