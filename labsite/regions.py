"""Where the files of workspaces lie: regions, each a name and a folder, of which a workspace has one."""

import re
from collections.abc import Iterable
from pathlib import Path

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


def read_regions(text: str, *, own: Path, closed: Iterable[Path]) -> dict[str, Path]:
    """Regions by name, from `name=folder` pairs between commas. `local` is always among them: `own`, unless the text says another folder.

    `closed` are folders in which no region may lie, and which none may hold. Raises ValueError with a sentence for the operator.
    """
    named: dict[str, Path] = {}
    for pair in filter(None, map(str.strip, text.split(","))):
        name, equals, folder = pair.partition("=")
        if not equals or not _NAME.fullmatch(name):
            raise ValueError(f"{pair[:80]!r} is no name=folder; a name has lower-case letters, digits, - and _, 64 at most")
        if name in named:
            raise ValueError(f"the region {name} is named twice")
        if not Path(folder).is_absolute():
            raise ValueError(f"the folder of the region {name} is not a whole path: {folder[:80]!r}")
        named[name] = Path(folder)
    regions = {"local": own} | named
    whole = {name: root.resolve() for name, root in regions.items()}
    for name, root in whole.items():
        for other, place in whole.items():
            if other != name and root.is_relative_to(place):
                raise ValueError(f"the folder of the region {name} lies in that of {other}: {regions[name]}")
        for place in (path.resolve() for path in closed):
            if root.is_relative_to(place) or place.is_relative_to(root):
                raise ValueError(f"the folder of the region {name} must lie outside of {place}, and not around it: {regions[name]}")
    return regions


def missing_regions(regions: dict[str, Path], *, home: Path) -> list[str]:
    """Names of the regions whose folder is not there, as where a disk is not mounted. One in `home` is made with its first file."""
    return sorted(name for name, root in regions.items() if not (root.parent if root.is_relative_to(home) else root).is_dir())
