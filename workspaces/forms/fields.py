"""Fields that the registry's forms share."""

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from django import forms
from django.core.files.uploadedfile import UploadedFile

from workspaces import ids
from workspaces.contract_metrics import Metric, metric_from_line, metric_lines
from workspaces.windows import OUTSIDE_CALENDAR, is_in_calendar


class SlugField(forms.CharField):
    """The name that ids and addresses use."""

    def __init__(self, **kwargs: Any) -> None:
        hint = "Lower-case letters, digits, - and _. It stands in addresses and ids and stays."
        super().__init__(max_length=64, label="Id", help_text=hint, validators=[ids.validate_slug], **kwargs)


class FilesInput(forms.FileInput):
    allow_multiple_selected = True


class FilesField(forms.FileField):
    """One or more files; cleans to a list. What is in them is judged by the command."""

    widget = FilesInput

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(allow_empty_file=True, max_length=255, widget=FilesInput(attrs={"multiple": True}), **kwargs)

    def clean(self, data: Any, initial: Any = None) -> list[UploadedFile]:
        files = data if isinstance(data, list | tuple) else [data] if data else []
        if not files:
            super().clean(None, initial)
        return [super(FilesField, self).clean(file, initial) for file in files]


class SchemaField(forms.CharField):
    """A JSON object, as text; empty is the empty object."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(
            required=False, max_length=200_000, widget=forms.Textarea(attrs={"class": "code", "rows": 10, "spellcheck": "false"}), **kwargs
        )

    def to_python(self, value: Any) -> Any:
        text = super().to_python(value)
        if not text:
            return {}
        try:
            found = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise forms.ValidationError("This is not JSON: %(why)s.", params={"why": str(error)[:200]}) from error
        if not isinstance(found, dict):
            raise forms.ValidationError("This is JSON, but no object in { }.")
        return found


class LinesField(forms.CharField):
    """Text of one entry a line; cleans to a list without empty lines."""

    def __init__(self, *, rows: int = 3, **kwargs: Any) -> None:
        super().__init__(max_length=20_000, widget=forms.Textarea(attrs={"class": "code", "rows": rows, "spellcheck": "false"}), **kwargs)

    def to_python(self, value: Any) -> Any:
        text = super().to_python(value)
        return [line.strip() for line in str(text).splitlines() if line.strip()]


class NamesField(forms.CharField):
    """Names with commas or blanks between them; cleans to a list."""

    def to_python(self, value: Any) -> Any:
        text = super().to_python(value)
        return str(text).replace(",", " ").split()


class InstantField(forms.CharField):
    """An instant as ISO 8601; without an offset it is UTC. Cleans to an aware datetime in UTC, or None."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(widget=forms.TextInput(attrs={"placeholder": "2026-12-01T09:00Z", "maxlength": 40}), **kwargs)

    def prepare_value(self, value: Any) -> Any:
        return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if isinstance(value, datetime) else value

    def to_python(self, value: Any) -> Any:
        text = str(super().to_python(value)).strip()
        if not text:
            return None
        try:
            found = datetime.fromisoformat(text)
            found = (found if found.tzinfo is not None else found.replace(tzinfo=UTC)).astimezone(UTC)
        except (ValueError, OverflowError) as error:
            raise forms.ValidationError("Write it as 2026-12-01T09:00Z, or with another offset such as +01:00.") from error
        if not is_in_calendar(found):
            raise forms.ValidationError(OUTSIDE_CALENDAR)
        return found


class DayField(forms.DateField):
    """A day that the clock of every zone can show."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(widget=forms.DateInput(attrs={"type": "date"}), **kwargs)

    def to_python(self, value: Any) -> Any:
        found = super().to_python(value)
        if found is not None and not is_in_calendar(found):
            raise forms.ValidationError(OUTSIDE_CALENDAR)
        return found


class MetricsField(LinesField):
    """Metrics, one a line: `name | unit | direction`; cleans to a list of them."""

    def prepare_value(self, value: Any) -> Any:
        is_metrics = isinstance(value, Iterable) and not isinstance(value, str)
        return metric_lines(entry for entry in value if isinstance(entry, Metric)) if is_metrics else value

    def to_python(self, value: Any) -> Any:
        try:
            return [metric_from_line(line) for line in super().to_python(value)]
        except ValueError as error:
            raise forms.ValidationError(str(error)) from error


def paragraph(label: str, hint: str = "", *, required: bool = False) -> forms.CharField:
    return forms.CharField(label=label, help_text=hint, required=required, max_length=20_000, widget=forms.Textarea(attrs={"rows": 4}))


def reason() -> forms.CharField:
    return forms.CharField(label="Reason", required=False, max_length=1000, help_text="Kept in the audit log with this change.")
