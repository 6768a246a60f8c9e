"""A value of a document as a control holds it, and back. Pure."""

import json
from collections.abc import Mapping
from typing import Any

from runs.schema_words import TYPES
from workspaces.text import is_finite

LONG = 200  # characters from which a text has several lines


def kind_of(schema: Mapping[str, Any]) -> str:
    """Which control takes what a schema describes."""
    wanted = schema.get("type")
    if "enum" in schema or wanted == "boolean":
        return "choice"
    if wanted in ("integer", "number"):
        return "number"
    if wanted == "string":
        return "lines" if schema.get("maxLength", 0) > LONG else "text"
    return "json"


def hint_of(kind: str, schema: Mapping[str, Any]) -> str:
    if kind == "json":
        return f"JSON: {TYPES.get(str(schema.get('type')), 'any value')}"
    if kind != "number":
        return ""
    words = TYPES[schema["type"]].removeprefix("a ")
    least, most = schema.get("minimum"), schema.get("maximum")
    words += (
        f" above {schema['exclusiveMinimum']:,}" if "exclusiveMinimum" in schema else f", {least:,} or more" if least is not None else ""
    )
    return words + (f", at most {most:,}" if most is not None else "")


def shown_value(kind: str, value: Any) -> str:
    """A value as its control holds it; `_taken` gives it back."""
    if value is None:
        return ""
    if isinstance(value, str):
        return json.dumps(value) if kind in ("json", "number") and not isinstance(taken_value(kind, value, {}), str) else value
    return json.dumps(value, ensure_ascii=False)


def taken_value(kind: str, text: str, schema: Mapping[str, Any]) -> Any:
    if kind == "choice":
        return next((option for option in schema.get("enum", (True, False)) if shown_value(kind, option) == text), text)
    if kind not in ("json", "number"):
        return text if kind == "lines" else text.strip()
    try:
        found = json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError):
        return text.strip()
    if kind == "number" and (isinstance(found, bool) or not isinstance(found, int | float) or not is_finite(found)):
        return text.strip()
    return found


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is no number of JSON.")
