"""What a JSON Schema says against a value, in words that name what would be taken. Pure."""

import json
from collections.abc import Iterable
from typing import Any

from jsonschema.exceptions import ValidationError

TYPES = {
    "integer": "a whole number",
    "number": "a number",
    "string": "a text",
    "boolean": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}
# How a bound is broken, by the schema's word for it; `{0}` is the value, `{1}` the bound.
BOUNDS = {
    "minimum": "{0} is below {1}, the least that is allowed.",
    "maximum": "{0} is above {1}, the most that is allowed.",
    "exclusiveMinimum": "{0} is not above {1}.",
    "exclusiveMaximum": "{0} is not below {1}.",
    "multipleOf": "{0} is no multiple of {1}.",
    "minItems": "{0} has fewer than {1} entries.",
    "maxItems": "{0} has more than {1} entries.",
    "minLength": "{0} has fewer than {1} characters.",
    "maxLength": "{0} has more than {1} characters.",
    "uniqueItems": "{0} names something twice.",
}


def schema_words(error: ValidationError) -> str:
    """One sentence: what is there, and what is allowed."""
    wanted: Any = error.validator_value
    value: Any = error.instance
    match error.validator:
        case "type":
            kinds = [wanted] if isinstance(wanted, str) else list(wanted)
            return f"{shown(value)} is not {either(TYPES.get(str(kind), str(kind)) for kind in kinds)}."
        case "enum":
            return f"{shown(value)} is none of {', '.join(shown(value) for value in wanted[:40])}."
        case "const":
            return f"{shown(value)} is not {shown(wanted)}, which alone is allowed."
        case "required":
            return f"{', '.join(shown(name) for name in wanted if name not in value)} is missing."
        case "additionalProperties" if wanted is False:
            known = sorted(error.schema.get("properties", {})) if isinstance(error.schema, dict) else []
            unknown = [name for name in value if name not in known]
            takes = f"it takes {', '.join(known[:40])}" if known else "it takes none"
            return f"{', '.join(shown(name) for name in unknown[:10])} is no parameter of this agent; {takes}."
    words = BOUNDS.get(str(error.validator))
    return words.format(shown(value), shown(wanted)) if words else f"{error.message[:200]}."


def shown(value: Any) -> str:
    """A value as JSON writes it, cut where it is long."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else f"{text[:79]}…"


def either(words: Iterable[str]) -> str:
    *before, last = words
    return f"{', '.join(before)} or {last}" if before else last
