"""Forms of policies: the name, and the document with why it should act."""

import json
from typing import Any

from django import forms

from runs.policy.document import BadPolicy, read_policy
from workspaces.text import is_storable


class PolicyForm(forms.Form):
    slug = forms.SlugField(max_length=64, label="Short name", help_text="In addresses and documents; it stays.")
    name = forms.CharField(max_length=200, help_text="As people call it.")
    benchmark = forms.CharField(
        max_length=100, required=False, help_text="Short name of the one benchmark that its action may be about; empty for any."
    )


class VersionForm(forms.Form):
    document = forms.CharField(
        max_length=50_000,
        widget=forms.Textarea(attrs={"rows": 28, "class": "mono", "spellcheck": "false"}),
        help_text="One JSON object: trigger, conditions, gate, action, limits. Nothing in it is evaluated; each name stands for what is built in.",
    )
    reason = forms.CharField(max_length=1000, label="Why", help_text="Whoever decides on it reads this.")

    def clean_document(self) -> dict[str, Any]:
        document = read_json(self.cleaned_data["document"])
        try:
            read_policy(document)
        except BadPolicy as fault:
            raise forms.ValidationError(list(fault.faults)) from fault
        return document


def read_json(text: str) -> dict[str, Any]:
    """Raises ValidationError with where it stops being JSON."""
    if not is_storable(text):
        raise forms.ValidationError("It holds a character that no database can keep.")
    try:
        found = json.loads(text, parse_constant=_no_number)
    except json.JSONDecodeError as fault:
        raise forms.ValidationError(f"This is no JSON: {fault.msg}, line {fault.lineno}, character {fault.colno}.") from fault
    except (ValueError, RecursionError) as fault:
        raise forms.ValidationError(f"This cannot be kept: {fault}"[:300]) from fault
    if not isinstance(found, dict):
        raise forms.ValidationError("A policy is one JSON object, in braces.")
    return found


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is no number of JSON.")
