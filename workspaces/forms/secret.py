"""Forms of secrets. A value that was typed is never written back into a page, whatever was wrong with it or with the rest."""

from collections.abc import Sequence
from typing import Any

from django import forms

from workspaces.commands.secret import MAX_DAYS
from workspaces.forms.resource import why
from workspaces.models import Agent, Benchmark, Pool, Secret
from workspaces.secret_value import MOST_BYTES


class ValueForm(forms.Form):
    """A value, typed or as a file: line ends do not survive a field of one line."""

    value = forms.CharField(
        max_length=MOST_BYTES, strip=False, required=False, help_text="Nobody reads it here again, not even after a mistake in this form.",
        widget=forms.PasswordInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )  # fmt: skip
    file = forms.FileField(
        label="Or a file with it",
        required=False,
        max_length=255,
        help_text="For keys, and whatever has several lines. At most 64 KiB of text.",
    )

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        file = cleaned.pop("file", None)
        if file is not None and cleaned.get("value"):
            self.add_error("file", "Give the value once, typed or as a file.")
        elif file is not None:
            try:
                cleaned["value"] = file.read(MOST_BYTES + 1).decode()
            except UnicodeDecodeError:
                # Without the fault itself: it holds what it could not read.
                self.add_error("file", "The file is no text in UTF-8.")
        elif "value" in cleaned and not cleaned["value"] and "file" not in self.errors:
            self.add_error("value", "Type the value, or choose a file with it.")
        return cleaned


class RotateForm(ValueForm):
    reason = why(required=False)


class AllowForm(forms.Form):
    """What a secret is for, who may read it, when another value is due."""

    description = forms.CharField(
        label="What it opens", max_length=1000, required=False, help_text="And where another value comes from, for whoever must replace it."
    )
    agents = forms.MultipleChoiceField(
        label="Agents that may read it", required=False, widget=forms.CheckboxSelectMultiple, help_text="None chosen: no run reads it."
    )
    pools = forms.MultipleChoiceField(
        label="On these pools", required=False, widget=forms.CheckboxSelectMultiple, help_text="None chosen: no run reads it."
    )
    benchmarks = forms.MultipleChoiceField(
        label="Only for these benchmarks",
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text="None chosen: for every benchmark.",
    )
    rotate_after_days = forms.IntegerField(
        label="A new value is due after",
        required=False,
        min_value=1,
        max_value=MAX_DAYS,
        widget=forms.NumberInput(attrs={"data-unit": "days"}),
    )
    reason = why(required=False)

    def __init__(self, *args: Any, agents: Sequence[Agent], pools: Sequence[Pool], benchmarks: Sequence[Benchmark], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._agents = {agent.slug: agent for agent in agents}
        self._pools = {pool.slug: pool for pool in pools}
        self._benchmarks = {benchmark.slug: benchmark for benchmark in benchmarks}
        for name, slugs in (("agents", self._agents), ("pools", self._pools), ("benchmarks", self._benchmarks)):
            field = self.fields[name]
            assert isinstance(field, forms.MultipleChoiceField)
            field.choices = [(slug, slug) for slug in slugs]
            if not slugs and name == "benchmarks":
                del self.fields[name]

    def allowed(self) -> dict[str, Any]:
        """Arguments for the commands on secrets."""
        cleaned = self.cleaned_data
        return {
            "description": cleaned["description"],
            "agents": [self._agents[slug] for slug in cleaned["agents"]],
            "pools": [self._pools[slug] for slug in cleaned["pools"]],
            "benchmarks": [self._benchmarks[slug] for slug in cleaned.get("benchmarks", [])],
            "rotate_after_days": cleaned["rotate_after_days"],
        }


class SecretForm(ValueForm, AllowForm):
    """A secret that is not there yet."""

    name = forms.CharField(max_length=64, help_text="Capitals, digits and _, such as HF_TOKEN. A run finds its value in secrets/HF_TOKEN.")
    kind = forms.ChoiceField(choices=Secret.Kind.choices, help_text="An SSH key is checked, and shows its public half.")
    reason = None  # type: ignore[assignment]  # how Django's forms drop an inherited field
    field_order = ("name", "kind", "value", "file", "description", "agents", "pools", "benchmarks", "rotate_after_days")
