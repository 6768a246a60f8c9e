"""How a measurement ends: a word for each target, and exit code 1 where one was missed."""

import sys
from typing import NoReturn

_missed: list[str] = []


def judged(what: str, holds: bool) -> str:
    """`met` or `MISSED`, for the line that tells of it; what was missed is remembered until `leave`."""
    if not holds:
        _missed.append(what)
    return "met" if holds else "MISSED"


def leave() -> NoReturn:
    """End the script: exit code 1, and the names on the error output, where a target was missed."""
    if _missed:
        print(f"missed: {', '.join(_missed)}", file=sys.stderr)
    sys.exit(1 if _missed else 0)
