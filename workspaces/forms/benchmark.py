"""Forms of benchmarks and contracts."""

from typing import Any

from django import forms

from workspaces.commands.benchmark import MOST_RUNS
from workspaces.forms.fields import SlugField, paragraph, reason
from workspaces.models import Contract, DatasetVersion


class ContractForm(forms.Form):
    """What is measured, in which direction, on what. `holdouts` are the versions to choose from."""

    metric = forms.CharField(max_length=250, help_text="The key under which runs report it, such as holdout/accuracy.")
    direction = forms.ChoiceField(choices=Contract.Direction.choices)
    unit = forms.CharField(max_length=40, required=False, help_text="Such as Elo or seconds; empty for a share.")
    holdout = forms.ChoiceField(required=False, help_text="The frozen dataset version on which it is measured.")
    wall_seconds = forms.IntegerField(
        label="Longest evaluation",
        required=False,
        min_value=1,
        max_value=2_592_000,
        widget=forms.NumberInput(attrs={"data-unit": "seconds"}),
    )
    runs_per_person = forms.IntegerField(
        label="Runs per person",
        required=False,
        min_value=1,
        max_value=MOST_RUNS,
        help_text="At most so many that were or may still be scored in each period. Those that fail before a score do not count, those that their"
        " person cancels do. Empty: no limit.",
        widget=forms.NumberInput(attrs={"data-unit": "runs"}),
    )
    period = forms.ChoiceField(
        label="Period of that limit",
        required=False,
        choices=[("", "no limit"), *((value, label.lower()) for value, label in Contract.Period.choices)],
        help_text="Cut at midnights of the workspace's time zone.",
    )
    terms = paragraph("How it is measured", "In words: samples, repetitions, what counts as an answer.")
    accepts_no_isolation_reason = forms.CharField(
        label="Accept runs without isolation, because",
        max_length=1000,
        required=False,
        help_text="Only an owner says so. Empty: pools without isolation are refused where there is a holdout.",
    )
    reason = reason()

    def __init__(self, *args: Any, holdouts: list[DatasetVersion], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.versions = {str(version.pk): version for version in holdouts}
        choices = [(key, f"{version.dataset.name}, version {version.number}") for key, version in self.versions.items()]
        self.fields["holdout"] = forms.ChoiceField(
            choices=[("", "none"), *choices], required=False, help_text="The frozen dataset version on which it is measured."
        )

    def contract(self) -> dict[str, Any]:
        """Arguments of the contract for a command."""
        fields = {
            name: self.cleaned_data[name]
            for name in ("metric", "direction", "unit", "wall_seconds", "runs_per_person", "period", "terms", "accepts_no_isolation_reason")
        }
        return {**fields, "holdout": self.versions.get(self.cleaned_data["holdout"])}


class BenchmarkForm(ContractForm):
    """A benchmark with the first version of its contract."""

    slug = SlugField()
    name = forms.CharField(max_length=200)
    description = paragraph("Description")
    is_public = forms.BooleanField(label="Anyone may read the definition; runs and data stay private", required=False)

    field_order = [
        *("slug", "name", "description", "metric", "direction", "unit", "holdout", "wall_seconds", "runs_per_person", "period", "terms"),
        *("accepts_no_isolation_reason", "is_public"),
    ]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        del self.fields["reason"]

    def benchmark(self) -> dict[str, Any]:
        return {name: self.cleaned_data[name] for name in ("slug", "name", "description", "is_public")}


class BenchmarkEditForm(forms.Form):
    name = forms.CharField(max_length=200)
    description = paragraph("Description")
    is_public = forms.BooleanField(label="Anyone may read the definition; runs and data stay private", required=False)
    reason = reason()
