"""Parameters of a launch, whoever sends them: can they be kept, and are they what the agent's schema says (JSON Schema 2020-12)?"""

import math
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError

from workspaces.audit import Refusal
from workspaces.models import AgentVersion

MAX_DEPTH = 32
MAX_VALUES = 10_000


def checked_parameters(given: dict[str, Any], version: AgentVersion) -> dict[str, Any]:
    """The agent's defaults with what was given over them, checked against its schema (JSON Schema 2020-12)."""
    _refuse_unkeepable(given)
    schema = version.parameter_schema or {"type": "object"}
    properties = schema.get("properties", {}) if isinstance(schema, dict) else {}
    defaults = {name: entry["default"] for name, entry in properties.items() if isinstance(entry, dict) and "default" in entry}
    parameters = defaults | given
    try:
        faults = sorted(Draft202012Validator(schema).iter_errors(parameters), key=lambda fault: list(map(str, fault.path)))
    except SchemaError as error:
        raise Refusal("The agent's parameter schema cannot be read; publish a version with a sound one.", field="parameters") from error
    if faults:
        raise Refusal(
            *[f"{'.'.join(map(str, fault.path)) or 'parameters'}: {fault.message[:200]}." for fault in faults[:10]], field="parameters"
        )
    return parameters


def _refuse_unkeepable(given: dict[str, Any]) -> None:
    """Refuse parameters that no record can hold (NUL, half a surrogate pair, NaN, integers beyond 64 bits) or that are a weapon by their size."""
    layer: list[tuple[str, Any]] = [(str(name), value) for name, value in given.items()]
    count = 0
    texts = list(given)
    for _ in range(MAX_DEPTH):
        below: list[tuple[str, Any]] = []
        for name, value in layer:
            if isinstance(value, dict):
                texts += value
                below += [(name, item) for item in value.values()]
            elif isinstance(value, list):
                below += [(name, item) for item in value]
            elif isinstance(value, str):
                texts.append(value)
            elif isinstance(value, float) and not math.isfinite(value):
                raise Refusal(
                    f"{name[:80]!a} has NaN or an infinity in it; a parameter is a number that JSON has a word for.", field="parameters"
                )
            elif isinstance(value, int) and not -(2**63) <= value < 2**63:
                raise Refusal(f"{name[:80]!a} has an integer of more than 64 bits in it.", field="parameters")
        count += len(layer)
        if count > MAX_VALUES:
            raise Refusal(f"Parameters may have {MAX_VALUES:,} values in all; larger input is a dataset.", field="parameters")
        layer = below
        if not layer:
            break
    else:
        raise Refusal(f"Parameters may be {MAX_DEPTH} levels deep.", field="parameters")
    if any("\0" in text or any("\ud800" <= character <= "\udfff" for character in text) for text in texts):
        raise Refusal("The parameters hold a character that cannot be kept (NUL or half a surrogate pair).", field="parameters")
