"""Parameters of a launch, whoever sends them: can they be kept, and are they what the agent's schema says (JSON Schema 2020-12)?"""

import math
from dataclasses import dataclass
from itertools import islice
from typing import Any, cast

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, ValidationError

from runs.schema_words import schema_words
from workspaces.audit import Refusal
from workspaces.models import AgentVersion
from workspaces.text import UNSTORABLE, is_storable

MAX_DEPTH = 32
MAX_VALUES = 10_000
MAX_FAULTS = 10  # said at once


@dataclass(frozen=True, slots=True)
class Fault:
    """What a schema says against one parameter; `name` is empty where it is about all of them."""

    name: str
    words: str
    is_missing: bool = False

    def __str__(self) -> str:
        return f"{self.name or 'parameters'}: {self.words}"


def checked_parameters(given: dict[str, Any], version: AgentVersion) -> dict[str, Any]:
    """The agent's defaults with what was given over them, checked against its schema (JSON Schema 2020-12)."""
    faults = parameter_faults(given, version)
    if faults:
        raise Refusal(*map(str, faults[:MAX_FAULTS]), field="parameters")
    return defaults_of(version) | given


def parameter_faults(given: dict[str, Any], version: AgentVersion) -> list[Fault]:
    """Everything that the agent's schema says against these values over its defaults. Raises Refusal for what no record can hold."""
    _refuse_unkeepable(given)
    schema = version.parameter_schema or {"type": "object"}
    try:
        found = list(islice(Draft202012Validator(schema).iter_errors(defaults_of(version) | given), MAX_FAULTS * 10))
    except SchemaError as error:
        raise Refusal("The agent's parameter schema cannot be read; publish a version with a sound one.", field="parameters") from error
    # A fault for each name that is missing or unknown comes with the same path: the words name all of them once.
    return sorted(dict.fromkeys(fault for error in found for fault in _faults(error)), key=lambda fault: fault.name)


def defaults_of(version: AgentVersion) -> dict[str, Any]:
    schema = version.parameter_schema
    properties = schema.get("properties", {}) if isinstance(schema, dict) else {}
    return {name: entry["default"] for name, entry in properties.items() if isinstance(entry, dict) and "default" in entry}


def _faults(error: ValidationError) -> list[Fault]:
    path = [str(part) for part in error.absolute_path]
    name, within = (path[0] if path else ""), ".".join(path[1:])
    if error.validator == "required" and not path:
        needed, given = cast(list[str], error.validator_value), cast(dict[str, Any], error.instance)
        words = "a value is needed, the agent has no default for it."
        return [Fault(wanted, words, is_missing=True) for wanted in needed if wanted not in given]
    said = schema_words(error)
    return [Fault(name, f"entry {within}: {said}" if within else said)]


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
    if not all(map(is_storable, texts)):
        raise Refusal(f"The parameters hold {UNSTORABLE}.", field="parameters")
