"""A parameter's entry in a JSON Schema as the sentence under its field: what it is, which values it takes, what holds when it is left empty."""

import json
import math
from decimal import Decimal
from typing import Any, TypeGuard

KINDS = {
    "integer": "Whole number",
    "number": "Number",
    "string": "Text",
    "boolean": "Yes or no",
    "object": "An object of JSON",
    "null": "Nothing",
}
ITEMS = {"string": "texts", "integer": "whole numbers", "number": "numbers", "boolean": "true or false"}
LONGEST = 500  # characters of a description


def hint(entry: dict[str, Any], *, required: bool) -> str:
    """`Step of gradient descent. Number from 0.000001 to 10; 0.05 where empty.`"""
    parts = [str(entry[key]).strip()[:LONGEST] for key in ("title", "description") if entry.get(key)]
    kind = f"{_kind(entry)}{_bounds(entry)}"
    if "default" in entry:
        kind += f"; {value_words(entry['default'])} where empty"
    elif required:
        kind += "; needed"
    else:
        kind += "; left out where empty"
    return " ".join(f"{part.rstrip('.')}." for part in (*parts, kind))


def value_words(value: Any) -> str:
    """A value as people read it: `yes`, `0.05`, `10,000`, `mean_texture, mean_smoothness`."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return number_words(value)
    if isinstance(value, str):
        return value[:200] or "an empty text"
    if isinstance(value, list) and value and all(isinstance(item, str | int | float) for item in value):
        return ", ".join(value_words(item) for item in value[:20])[:300]
    return json.dumps(value, ensure_ascii=False)[:300]


def number_words(value: float) -> str:
    """`10,000`, `0.000001`; what would be longer than a line in its exponent form."""
    if isinstance(value, int):
        return f"{value:,}"
    if not math.isfinite(value) or not (value == 0 or 1e-9 < abs(value) < 1e15):
        return repr(value)
    return f"{int(value):,}" if value.is_integer() else f"{Decimal(repr(value)):f}"


def _kind(entry: dict[str, Any]) -> str:
    if isinstance(entry.get("enum"), list):
        return "One of the values named"
    kind = entry.get("type")
    if kind == "array":
        item = entry.get("items")
        words = ITEMS.get(str(item.get("type"))) if isinstance(item, dict) else None
        return f"List of {words}, one a line" if words else "A list of JSON"
    return KINDS.get(str(kind), "A value of JSON")


def _bounds(entry: dict[str, Any]) -> str:
    least, most = entry.get("minimum"), entry.get("maximum")
    words = ""
    if _is_number(least) and _is_number(most):
        words += f" from {number_words(least)} to {number_words(most)}"
    elif _is_number(least):
        words += f", at least {number_words(least)}"
    elif _is_number(most):
        words += f", at most {number_words(most)}"
    for key, phrase in (("exclusiveMinimum", "above"), ("exclusiveMaximum", "below"), ("multipleOf", "a multiple of")):
        if _is_number(entry.get(key)):
            words += f", {phrase} {number_words(entry[key])}"
    for key, phrase in (("minLength", "at least {} characters"), ("maxLength", "at most {} characters"),
                        ("minItems", "at least {}"), ("maxItems", "at most {}")):  # fmt: skip
        if _is_number(entry.get(key)) and (entry[key] > 1 or key.startswith("max")):
            words += f", {phrase.format(number_words(entry[key]))}"
    if entry.get("uniqueItems") is True:
        words += ", none twice"
    return words


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)
