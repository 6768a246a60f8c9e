"""Documents that people state and a run follows: JSON objects among its inputs, known by their schema."""

import json
import math
from pathlib import Path
from typing import Any

from run_folder import Input, Job, JobError

MAX_BYTES = 1_000_000


def only_document(job: Job, schema: str, called: str) -> tuple[Input, dict[str, Any]]:
    """The one document of that schema among the datasets, and the input that it stands in. Raises JobError where there is none, or several."""
    found = []
    for entry in job.inputs:
        for path in entry.files(".json") if entry.kind == "dataset" else []:
            document = _read(path)
            if isinstance(document, dict) and document.get("schema") == schema:
                found.append((entry, document))
    if len(found) != 1:
        given = ", ".join(entry.slug for entry, _ in found) or "none"
        raise JobError(f"{len(found) or 'no'} documents of schema {schema} among the inputs ({given}); give one {called}")
    return found[0]


def fields_of(found: Any, allowed: tuple[str, ...], needed: tuple[str, ...], where: str) -> None:
    """Refuse what is no object of these fields: a misspelt one would be ignored in silence."""
    if not isinstance(found, dict):
        raise JobError(f"{where} is no object")
    if unknown := sorted(set(found) - {"schema", *allowed}):
        raise JobError(f"{where}: {', '.join(map(repr, unknown))} is not known here; there are {', '.join(allowed)}")
    if missing := [name for name in needed if name not in found]:
        raise JobError(f"{where} does not say {', '.join(missing)}")


def number_of(found: dict[str, Any], name: str, low: float, high: float, where: str) -> float:
    value = found[name]
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or not low <= value <= high:
        raise JobError(f"{where}: {name} is {value!r}; it must be a number from {low:g} to {high:g}")
    return float(value)


def words_of_field(found: dict[str, Any], name: str, where: str) -> str:
    value = found[name]
    if not isinstance(value, str) or not value.strip():
        raise JobError(f"{where}: {name} must be text")
    return value


def _read(path: Path) -> Any:
    try:
        if path.stat().st_size > MAX_BYTES:
            return None
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None  # not a document of anybody's; whoever needs one says that there is none
