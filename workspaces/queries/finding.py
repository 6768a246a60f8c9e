"""What the last look at a chain found, kept in a file beside its checkpoints, so that every page can say it without walking the chain.

The file is a note, not evidence: it proves nothing, may be lost, and is replaced by the next whole verification. One JSON object
`{count, at, fault}`: how many events were walked, when (UTC), and the first fault, "" where the record was whole.
"""

import json
import os
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from workspaces import checkpoint


@dataclass(frozen=True, slots=True)
class Finding:
    count: int
    at: datetime
    fault: str = ""


def found(chain: str) -> Finding | None:
    """What was found last; None where nobody has looked, or the note cannot be read."""
    try:
        stated = json.loads(_place(chain).read_bytes())
        return Finding(count=int(stated["count"]), at=datetime.fromisoformat(stated["at"]), fault=str(stated["fault"]))
    except (OSError, ValueError, TypeError, KeyError):
        return None


def note(chain: str, *, count: int, fault: str) -> None:
    """Keep what was found, in one step: readers see the old note or the new one. A disk that refuses keeps none, and stops no verification."""
    path = _place(chain)
    body = json.dumps({"count": count, "at": datetime.now(UTC).isoformat(timespec="seconds"), "fault": fault})
    with suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=path.parent, prefix=path.name, delete=False) as file:
            file.write(body)
        try:
            os.replace(file.name, path)
        finally:
            Path(file.name).unlink(missing_ok=True)


def _place(chain: str) -> Path:
    return checkpoint.place(chain).with_suffix(".found")
