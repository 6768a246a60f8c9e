"""What one version of a policy says differently from another, line by line. Pure."""

import json
from difflib import unified_diff
from typing import Any

PARTS = ("trigger", "conditions", "gate", "action", "limits")  # in the order in which a decision goes through them


def lines_of(document: Any) -> list[str]:
    """A document as people read it, one value a line: its parts in their order, names within them by the alphabet."""
    ordered = json.loads(json.dumps(document, sort_keys=True))
    if isinstance(ordered, dict):
        ordered = {
            name: ordered[name] for name in sorted(ordered, key=lambda name: (PARTS.index(name) if name in PARTS else len(PARTS), name))
        }
    return json.dumps(ordered, indent=2, ensure_ascii=False).splitlines()


def changes(before: Any, after: Any) -> list[str]:
    """Lines that went (`-`), came (`+`) and stand around them; every line of `after` as new where there was nothing before."""
    if before is None:
        return [f"+{line}" for line in lines_of(after)]
    return list(unified_diff(lines_of(before), lines_of(after), lineterm="", n=2))[2:]
