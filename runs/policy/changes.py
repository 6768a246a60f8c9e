"""What one version of a policy says differently from another, line by line. Pure."""

import json
from difflib import unified_diff
from typing import Any


def lines_of(document: Any) -> list[str]:
    """A document as people read it, one value a line."""
    return json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False).splitlines()


def changes(before: Any, after: Any) -> list[str]:
    """Lines that went (`-`), came (`+`) and stand around them; every line of `after` as new where there was nothing before."""
    if before is None:
        return [f"+{line}" for line in lines_of(after)]
    return list(unified_diff(lines_of(before), lines_of(after), lineterm="", n=2))[2:]
