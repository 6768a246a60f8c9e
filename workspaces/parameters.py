"""Parameter schemas of agent versions: JSON Schema draft 2020-12, bounded, closed, and nothing fetched from elsewhere. Pure."""

from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError

MAX_NODES = 2_000
MAX_DEPTH = 16
DRAFT = "https://json-schema.org/draft/2020-12/schema"
# A pattern is a regular expression, which could run for hours on a short text; references could lead elsewhere or in circles.
REFUSED_KEYWORDS = frozenset({"$ref", "$dynamicRef", "$dynamicAnchor", "pattern", "patternProperties", "propertyNames"})


class BadSchema(ValueError):  # an answer for people
    """A parameter schema that is not taken; the message is a sentence."""


def check_schema(schema: Any) -> dict[str, Any]:
    """The schema, once it is an object schema within the bounds. An empty one means that a run takes no parameters."""
    if not isinstance(schema, dict):
        raise BadSchema("A parameter schema is a JSON object.")
    if not schema:
        return schema
    _refuse_bounds(schema)
    if str(schema.get("$schema", DRAFT)).rstrip("#") != DRAFT:
        raise BadSchema(f"A parameter schema follows draft 2020-12; leave $schema out or write {DRAFT}.")
    if schema.get("type") != "object":
        raise BadSchema('Parameters have names, so the schema is of "type": "object".')
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        where = "/".join(str(part) for part in error.absolute_path) or "the schema"
        raise BadSchema(f"{where[:200]}: {error.message[:300]}") from error
    return schema


def _refuse_bounds(schema: dict[str, Any]) -> None:
    """Size, depth and keywords. Names of parameters are no keywords: a parameter may be called `pattern`."""
    waiting: list[tuple[Any, int, bool]] = [(schema, 1, False)]
    count = 0
    while waiting:
        value, depth, is_names = waiting.pop()
        count += 1
        if count > MAX_NODES:
            raise BadSchema(f"A parameter schema may have {MAX_NODES:,} values.")
        if depth > MAX_DEPTH:
            raise BadSchema(f"A parameter schema may be {MAX_DEPTH} levels deep.")
        if isinstance(value, dict):
            refused = () if is_names else sorted(REFUSED_KEYWORDS & value.keys())
            if refused:
                raise BadSchema(f"{', '.join(refused)} is not taken in a parameter schema; write the rule out without it.")
            waiting += [(item, depth + 1, key == "properties" and not is_names) for key, item in value.items()]
        elif isinstance(value, list):
            waiting += [(item, depth + 1, False) for item in value]
