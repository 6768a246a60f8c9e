"""Tables that are checked in and written anew by `make baselines`; a drift fails with the lines that differ."""

import difflib
import os
from pathlib import Path

import pytest


def compare(path: Path, text: str) -> None:
    """Fail where `path` does not hold `text`; under LABSITE_WRITE_BASELINES=1 write it instead."""
    if os.environ.get("LABSITE_WRITE_BASELINES") == "1":
        path.write_text(text)
        return
    kept = path.read_text() if path.exists() else ""
    if kept != text:
        lines = difflib.unified_diff(kept.splitlines(), text.splitlines(), "checked in", "now", lineterm="", n=0)
        pytest.fail(f"{path.name} is out of date; look at the change and run `make baselines`:\n" + "\n".join(list(lines)[:60]))
