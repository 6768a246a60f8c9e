"""The form of a sweep: a launch whose parameters may be given several values, or a range to draw from."""

import json
import re
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.http import QueryDict

from runs.forms.launch import LaunchForm
from runs.forms.parameter_words import hint
from runs.forms.parameters import properties_of, refuse_constant
from runs.queries.launch_choices import LaunchChoices

PREFIX = "v."
LONGEST = 20_000  # characters of one field
NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
RANGE = re.compile(rf"\s*({NUMBER})\s*\.\.\s*({NUMBER})\s*(linear|log|integer)?\s*")
SEED_RANGE = re.compile(r"\s*(\d{1,18})\s*\.\.\s*(\d{1,18})\s*")
MOST_SEEDS = 1_000


class Values(forms.CharField):
    """`0.1, 0.01`: values to try; `0.001..1 log`: a range to draw from; empty: the agent's default. Texts need no quotes."""

    def __init__(self, entry: dict[str, Any], **options: Any) -> None:
        super().__init__(required=False, max_length=LONGEST, **options)
        self.entry = entry

    def clean(self, value: Any) -> Any:
        text = super().clean(value)
        if not text:
            return None
        found = RANGE.fullmatch(text)
        if found:
            low, high, scale = found.groups()
            is_integer = self.entry.get("type") == "integer" and scale is None
            return {"low": _number(low), "high": _number(high), "scale": "integer" if is_integer else scale or "linear"}
        return self._list(text)

    def _list(self, text: str) -> list[Any]:
        try:
            values = json.loads(f"[{text}]", parse_constant=refuse_constant)
            if self.entry.get("type") == "string" and any(not isinstance(value, str) for value in values):
                raise ValueError("texts that look like numbers")
        except (ValueError, RecursionError) as error:
            if self.entry.get("type") not in ("string", None) and "enum" not in self.entry:
                raise ValidationError(
                    "Write values with commas between them, such as 0.1, 0.01, or a range such as 0.001..1 log."
                ) from error
            values = [part.strip() for part in text.split(",") if part.strip()]
        return list(values)


class SweepForm(LaunchForm):
    """Fields `v.<parameter>` take several values. `asked()` is what `create_sweep` wants, after `is_valid()`."""

    seeds = forms.CharField(
        required=False, max_length=LONGEST, help_text="Every point of the sweep is run once with each: 1, 2, 3 or 1..20. Empty: once."
    )
    draws = forms.IntegerField(
        required=False,
        min_value=1,
        label="Points to draw",
        help_text="Empty: every combination of the values. A number: that many points, drawn evenly; then ranges such as 0.001..1 log can be named.",
    )
    draw_seed = forms.IntegerField(
        required=False, min_value=0, max_value=2**63 - 1, label="Seed of the draws", help_text="The same seed draws the same."
    )

    def __init__(self, given: QueryDict | None, choices: LaunchChoices, *, is_draft: bool = False) -> None:
        super().__init__(given, choices, is_draft=is_draft)
        del self.fields["seed"]
        for name in self.parameter_names:
            del self.fields[name]
        entries = {name: entry for name, entry in properties_of(self.chosen_schema).items() if isinstance(entry, dict)}
        self.parameter_names = [f"{PREFIX}{name}" for name in entries]
        for name, entry in entries.items():
            self.fields[f"{PREFIX}{name}"] = Values(entry, label=name[:200], help_text=hint(entry, required=False))
        self.fields["name"].help_text = "Empty: the agent's name and a number."
        self.fields["gpu_hours"].label = "Budget of each member"

    def clean_seeds(self) -> list[int]:
        text = self.cleaned_data["seeds"]
        if not text:
            return []
        between = SEED_RANGE.fullmatch(text)
        if between:
            first, last = int(between[1]), int(between[2])
            if not 0 <= last - first < MOST_SEEDS:
                raise ValidationError(f"{text.strip()} is not between 1 and {MOST_SEEDS:,} seeds.")
            return list(range(first, last + 1))
        parts = [part.strip() for part in text.split(",") if part.strip()]
        if not all(part.isascii() and part.isdigit() and len(part) < 19 for part in parts):
            raise ValidationError("Seeds are whole numbers with commas between them, or a range such as 1..20.")
        return [int(part) for part in parts]

    @property
    def has_space(self) -> bool:
        """Is anything varied yet? After `is_valid()`."""
        given = self.cleaned_data
        return all(given.get(name) for name in ("benchmark", "agent")) and bool(given["seeds"] or self.space()["axes"])

    def space(self) -> dict[str, Any]:
        """The search space. With draws, one value is fixed and several are drawn from; else a single value is no axis."""
        given = self.cleaned_data
        values = {name.removeprefix(PREFIX): given[name] for name in self.parameter_names if given.get(name) is not None}
        axes = {name: value for name, value in values.items() if isinstance(value, dict) or len(value) > 1}
        space: dict[str, Any] = {"kind": "sampler" if given["draws"] else "grid", "axes": axes}
        if given["seeds"]:
            space["seeds"] = given["seeds"]
        if given["draws"]:
            space |= {"count": given["draws"], "seed": given["draw_seed"] or 0}
        return space

    def parameters(self, given: dict[str, Any]) -> dict[str, Any]:
        """Those with one value, which hold for all members."""
        named = {name.removeprefix(PREFIX): given.get(name) for name in self.parameter_names}
        return {name: values[0] for name, values in named.items() if isinstance(values, list) and len(values) == 1}

    def asked(self) -> dict[str, Any]:
        return {"name": self.cleaned_data["name"], "space": self.space(), "request": self.request(), "purpose": self.cleaned_data["reason"]}


def _number(text: str) -> float | int:
    value = float(text)
    return int(value) if value.is_integer() and abs(value) < 2**53 else value
