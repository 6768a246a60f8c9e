"""Fields for an agent version's parameters, from its JSON Schema where that is simple; else one field of JSON."""

import json
import math
from typing import Any

from django import forms
from django.core.exceptions import ValidationError

PREFIX = "p."
MOST_FIELDS = 40
LONGEST = 100_000  # characters of JSON


class Json(forms.Field):
    """An object of JSON; NaN and infinities are refused, which JSON does not have."""

    def __init__(self, **options: Any) -> None:
        widget = forms.Textarea(attrs={"class": "code", "spellcheck": "false", "rows": 8})
        super().__init__(required=False, widget=widget, **options)

    def to_python(self, value: Any) -> dict[str, Any]:
        text = str(value or "").strip()
        if not text:
            return {}
        if len(text) > LONGEST:
            raise ValidationError(f"This has {len(text):,} characters; {LONGEST:,} are taken.")
        try:
            found = json.loads(text, parse_constant=_refuse_constant)
        except (ValueError, RecursionError) as error:
            raise ValidationError(f"This is not JSON: {str(error)[:200]}.") from error
        if not isinstance(found, dict):
            raise ValidationError('Write an object, such as {"rate": 0.1}.')
        return found


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no number of JSON")


def is_simple(schema: dict[str, Any]) -> bool:
    """Can every property be one field?"""
    properties = schema.get("properties", {})
    plain = (
        isinstance(properties, dict) and 0 < len(properties) <= MOST_FIELDS and not set(schema) & {"oneOf", "anyOf", "allOf", "if", "$ref"}
    )
    return plain and all(isinstance(entry, dict) and _field(name, entry, required=False) is not None for name, entry in properties.items())


def parameter_fields(schema: dict[str, Any]) -> dict[str, forms.Field]:
    """Fields by their names in the form; empty where the agent takes no parameters."""
    if not schema or (schema.get("properties") in (None, {}) and schema.get("additionalProperties") is False):
        return {}
    if not is_simple(schema):
        return {"parameters": Json(label="Parameters as JSON", help_text="Checked against the agent's schema before anything starts.")}
    required = schema.get("required", [])
    found = {f"{PREFIX}{name}": _field(name, entry, required=name in required) for name, entry in schema["properties"].items()}
    return {name: field for name, field in found.items() if field is not None}


def parameters_of(cleaned: dict[str, Any]) -> dict[str, Any]:
    """The parameters that were given; an empty field leaves the agent's default."""
    named = {name.removeprefix(PREFIX): value for name, value in cleaned.items() if name.startswith(PREFIX) and value not in (None, "")}
    return named | (cleaned.get("parameters") or {})


def _field(name: str, entry: dict[str, Any], *, required: bool) -> forms.Field | None:
    default = entry.get("default")
    options: dict[str, Any] = {
        "label": str(entry.get("title") or name)[:200],
        "help_text": str(entry.get("description") or "")[:500],
        "required": required and default is None,
        "initial": default,
    }
    if "enum" in entry:
        return _choice(entry["enum"], options)
    match entry.get("type"):
        case "integer":
            return forms.IntegerField(min_value=_bound(entry, "minimum"), max_value=_bound(entry, "maximum"), **options)
        case "number":
            return Number(**options)
        case "boolean":
            words = [("", "default"), ("true", "yes"), ("false", "no")]
            initial = None if default is None else "true" if default else "false"
            return forms.TypedChoiceField(
                choices=words, coerce=lambda text: text == "true", empty_value=None, **options | {"initial": initial}
            )
        case "string":
            return forms.CharField(max_length=min(_bound(entry, "maxLength") or 10_000, 10_000), strip=False, **options)
    return None


class Number(forms.FloatField):
    """A finite number, written with a point."""

    widget = forms.TextInput(attrs={"inputmode": "decimal"})

    def validate(self, value: Any) -> None:
        super().validate(value)
        if value is not None and not math.isfinite(value):
            raise ValidationError("Write a finite number.")


def _choice(values: Any, options: dict[str, Any]) -> forms.Field | None:
    if not isinstance(values, list) or not values or not all(isinstance(value, str | int | float | bool) for value in values):
        return None
    by_text = {as_text(value): value for value in values}
    words = [("", "default"), *((text, str(value)) for text, value in by_text.items())]
    initial = as_text(options["initial"]) if options["initial"] is not None else None
    return forms.TypedChoiceField(choices=words, coerce=by_text.__getitem__, empty_value=None, **options | {"initial": initial})


def as_text(value: Any) -> str:
    """A parameter as its field is given it: text as it is, everything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _bound(entry: dict[str, Any], name: str) -> int | None:
    value = entry.get(name)
    return (
        int(value)
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and abs(value) < 2**53
        else None
    )
