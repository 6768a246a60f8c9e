"""Fields for an agent version's parameters: one for each property of its JSON Schema; one for all where the schema names none."""

import json
import math
from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from runs.forms.parameter_words import hint, value_words

PREFIX = "p."
MOST_FIELDS = 40
LONGEST = 100_000  # characters of one field
ALTERNATIVES = frozenset({"oneOf", "anyOf"})  # which properties there are depends on values


class Json(forms.Field):
    """One value of JSON, an object where `is_object`; NaN and infinities are refused, which JSON does not have."""

    def __init__(self, *, is_object: bool = True, rows: int = 8, **options: Any) -> None:
        self.is_object = is_object
        options.setdefault("required", False)
        super().__init__(widget=forms.Textarea(attrs={"class": "code", "spellcheck": "false", "rows": rows}), **options)

    def to_python(self, value: Any) -> Any:
        text = _bounded(value)
        if not text:
            return None
        try:
            found = json.loads(text, parse_constant=refuse_constant)
        except (ValueError, RecursionError) as error:
            raise ValidationError(f"This is not JSON: {str(error)[:200]}.") from error
        if self.is_object and not isinstance(found, dict):
            raise ValidationError('Write an object, such as {"rate": 0.1}.')
        return found


class Items(forms.Field):
    """A list of texts, numbers or truths, one a line; a list of JSON is taken as well."""

    def __init__(self, item: str, *, default: Any, **options: Any) -> None:
        self.item = item
        rows = min(max(len(default) if isinstance(default, list) else 0, 2), 6)
        super().__init__(widget=forms.Textarea(attrs={"class": "code lines", "spellcheck": "false", "rows": rows}), **options)

    def to_python(self, value: Any) -> list[Any] | None:
        text = _bounded(value)
        if text.startswith("["):
            try:
                found = json.loads(text, parse_constant=refuse_constant)
            except (ValueError, RecursionError) as error:
                raise ValidationError(f"This is not a list of JSON: {str(error)[:200]}. One entry a line is enough.") from error
            return list(found)
        return [self._entry(line.strip()) for line in text.splitlines() if line.strip()] or None

    def _entry(self, line: str) -> Any:
        if self.item == "string":
            return line
        try:
            found = json.loads(line, parse_constant=refuse_constant)
        except (ValueError, RecursionError):
            found = None
        if isinstance(found, bool) if self.item == "boolean" else isinstance(found, int | float) and not isinstance(found, bool):
            return found
        raise ValidationError(f"{line[:80]} is not {'true or false' if self.item == 'boolean' else 'a number'}; write one entry a line.")


class Number(forms.FloatField):
    """A finite number, written with a point."""

    widget = forms.TextInput(attrs={"inputmode": "decimal", "autocomplete": "off"})

    def validate(self, value: Any) -> None:
        super().validate(value)
        if value is not None and not math.isfinite(value):
            raise ValidationError("Write a finite number.")


def properties_of(schema: dict[str, Any]) -> dict[str, Any]:
    found = schema.get("properties") if isinstance(schema, dict) else None
    return found if isinstance(found, dict) else {}


def is_simple(schema: dict[str, Any]) -> bool:
    """Can every parameter be one field?"""
    return 0 < len(properties_of(schema)) <= MOST_FIELDS and not set(schema) & ALTERNATIVES


def parameter_fields(schema: dict[str, Any]) -> dict[str, forms.Field]:
    """Fields by their names in the form; empty where the agent takes no parameters."""
    properties = properties_of(schema)
    if not schema or (not properties and schema.get("additionalProperties") is False):
        return {}
    if not is_simple(schema):
        known = f" It names {', '.join(sorted(properties)[:MOST_FIELDS])}." if properties else ""
        return {"parameters": Json(label="Parameters as JSON", help_text=f"An object, checked against the agent's schema.{known}")}
    required = schema.get("required")
    needed = set(map(str, required)) if isinstance(required, list) else set()
    names = sorted(properties, key=lambda name: (name not in needed, name))  # the database keeps no order of its own
    return {f"{PREFIX}{name}": _field(name, properties[name], required=name in needed) for name in names}


def parameters_of(cleaned: dict[str, Any]) -> dict[str, Any]:
    """The parameters that were given; an empty field leaves the agent's default."""
    named = {name.removeprefix(PREFIX): value for name, value in cleaned.items() if name.startswith(PREFIX) and value not in (None, "")}
    return named | (cleaned.get("parameters") or {})


def _field(name: str, entry: Any, *, required: bool) -> forms.Field:
    entry = entry if isinstance(entry, dict) else {}
    default = entry.get("default")
    options: dict[str, Any] = {
        "label": name[:200],
        "help_text": hint(entry, required=required),
        "required": required and default is None,
    }
    field = _control(entry, default, options)
    if default is not None and not isinstance(field, forms.ChoiceField):
        field.widget.attrs["placeholder"] = as_text(default)[:2000]
    return field


def _control(entry: dict[str, Any], default: Any, options: dict[str, Any]) -> forms.Field:
    choices = entry.get("enum")
    if isinstance(choices, list) and choices and all(isinstance(value, str | int | float | bool) for value in choices):
        return _choice(choices, default, options)
    match entry.get("type"):
        case "integer":
            # The schema says what is out of bounds; the widget's bounds are for the arrow keys.
            bounds = {"min": _bound(entry, "minimum"), "max": _bound(entry, "maximum")}
            attributes = {name: value for name, value in bounds.items() if value is not None}
            return forms.IntegerField(widget=forms.NumberInput(attrs=attributes), **options)
        case "number":
            return Number(**options)
        case "boolean":
            return _choice([True, False], default, options)
        case "string":
            return forms.CharField(max_length=min(_bound(entry, "maxLength") or 10_000, 10_000), strip=False, **options)
        case "array":
            item = entry.get("items")
            kind = item.get("type") if isinstance(item, dict) else None
            if kind in ("string", "integer", "number", "boolean"):
                return Items(str(kind), default=default, **options)
    return Json(is_object=False, rows=3, **options)


def _choice(values: list[Any], default: Any, options: dict[str, Any]) -> forms.Field:
    by_text = {as_text(value): value for value in values}
    empty = (
        "Choose" if default is None and options["required"] else f"{value_words(default)} (default)" if default is not None else "left out"
    )
    words = [("", empty), *((text, value_words(value)) for text, value in by_text.items())]
    return forms.TypedChoiceField(choices=words, coerce=by_text.__getitem__, empty_value=None, **options)


def as_text(value: Any) -> str:
    """A parameter as its field is given it: text as it is, a list of plain texts one a line, everything else as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value and not str(value[0]).startswith("[") and all(map(_is_line, value)):
        return "\n".join(value)
    return json.dumps(value, ensure_ascii=False)


def _is_line(item: Any) -> bool:
    return isinstance(item, str) and item == item.strip() and len(item.splitlines()) == 1


def _bounded(value: Any) -> str:
    text = str(value or "").strip()
    if len(text) > LONGEST:
        raise ValidationError(f"This has {len(text):,} characters; {LONGEST:,} are taken.")
    return text


def refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no number of JSON")


def _bound(entry: dict[str, Any], name: str) -> int | None:
    value = entry.get(name)
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and abs(value) < 2**53
    return int(value) if is_number else None  # type: ignore[arg-type]  # is_number says so
