"""The Python of pools, where runs of a test look for it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def linked_python(runs: str | Path, pool_python: str) -> Iterator[None]:
    """Runs find their Python below the folder of runs, which is the test's own."""
    link = Path(runs) / "python"
    made = not link.exists()
    if made:
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(Path(pool_python).parent.parent)
    try:
        yield
    finally:
        if made:
            link.unlink()
