"""Forms of benchmarks and contracts."""

from collections.abc import Mapping
from typing import Any

from django import forms

from workspaces.commands.benchmark import MOST_RUNS
from workspaces.commands.contract_parts import MOST_MEMORY
from workspaces.contract_metrics import MOST_METRICS
from workspaces.forms.fields import InstantField, MetricsField, SlugField, paragraph, reason
from workspaces.models import AgentVersion, Contract, DatasetVersion
from workspaces.queries.registry import ContractChoices

MEBIBYTE = 2**20
VERSIONS = ("holdout", "train", "validation", "evaluator")  # fields that name a row
TEXTS = (
    "metric", "direction", "unit", "wall_seconds", "runs_per_person", "period", "terms", "accepts_no_isolation_reason", "metrics", "over_seeds",
    "tie_rule", "opens_at", "closes_at", "counts_all_samples",
)  # fmt: skip


class ContractForm(forms.Form):
    """What is measured, in which direction, on what. `choices` are the versions to choose from."""

    metric = forms.CharField(max_length=250, help_text="The key under which runs report it, such as holdout/accuracy.")
    direction = forms.ChoiceField(choices=Contract.Direction.choices)
    unit = forms.CharField(max_length=40, required=False, help_text="Such as Elo or seconds; empty for a share.")
    metrics = MetricsField(
        label="Metrics beside it",
        required=False,
        help_text=f"One a line, at most {MOST_METRICS}: name | unit | minimize. Without a direction higher is better. They are columns of the"
        " scoreboard; the metric above ranks.",
    )
    over_seeds = forms.ChoiceField(
        label="Runs that differ by their seed alone",
        required=False,
        choices=[("", "each stands for itself"), *((value, f"ranked by their {label}") for value, label in Contract.OverSeeds.choices)],
        help_text="Same version of the agent, same parameters but for seed.",
    )
    tie_rule = forms.ChoiceField(
        label="Equal scores",
        choices=[(value, label) for value, label in Contract.TieRule.choices],
        initial=Contract.TieRule.SHARED_RANK,
        required=False,
        help_text="Whole values are compared, not what is displayed of them. Either way the earlier one stands first.",
    )
    holdout = forms.ChoiceField(required=False, help_text="The frozen dataset version on which it is measured.")
    train = forms.ChoiceField(label="Training data", required=False, help_text="The version that runs are meant to train on.")
    validation = forms.ChoiceField(label="Validation data", required=False, help_text="The version that runs may tune on.")
    evaluator = forms.ChoiceField(
        required=False, help_text="The one agent version whose runs score. Empty: every run may report its score."
    )
    counts_all_samples = forms.BooleanField(
        label="Every sample counts: those that erred or were abstained from stay in the denominator", required=False
    )
    opens_at = InstantField(label="Opens", required=False, help_text="From when on runs may be asked for; UTC where no offset is given.")
    closes_at = InstantField(
        label="Closes", required=False, help_text="From this instant on no more. What was asked for before is still scored."
    )
    wall_seconds = forms.IntegerField(
        label="Longest evaluation",
        required=False,
        min_value=1,
        max_value=2_592_000,
        widget=forms.NumberInput(attrs={"data-unit": "seconds"}),
    )
    memory = forms.IntegerField(
        label="Most memory of an evaluation",
        required=False,
        min_value=1,
        max_value=MOST_MEMORY // MEBIBYTE,
        widget=forms.NumberInput(attrs={"data-unit": "MiB"}),
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

    def __init__(self, *args: Any, choices: ContractChoices, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.versions: dict[str, Mapping[str, DatasetVersion | AgentVersion]] = {
            name: {str(version.pk): version for version in getattr(choices, name)} for name in VERSIONS
        }
        for name, versions in self.versions.items():
            field = self.fields[name]
            assert isinstance(field, forms.ChoiceField)
            field.choices = [("", "none"), *((key, version.label) for key, version in versions.items())]

    def contract(self) -> dict[str, Any]:
        """Arguments of the contract for a command."""
        memory = self.cleaned_data["memory"]
        return {
            **{name: self.cleaned_data[name] for name in TEXTS},
            "tie_rule": self.cleaned_data["tie_rule"] or Contract.TieRule.SHARED_RANK,
            **{name: versions.get(self.cleaned_data[name]) for name, versions in self.versions.items()},
            "memory_bytes": memory * MEBIBYTE if memory else None,
        }

    @staticmethod
    def filled(contract: Contract) -> dict[str, Any]:
        """What the form of the next version begins with; a reason to accept runs without isolation is given anew each time."""
        left = ("accepts_no_isolation_reason", "metrics")
        return {
            **{name: getattr(contract, name) for name in TEXTS if name not in left},
            **{name: str(getattr(contract, f"{name}_id") or "") for name in VERSIONS},
            "metrics": contract.all_metrics[1:],
            "memory": contract.memory_bytes // MEBIBYTE if contract.memory_bytes else None,
        }


class BenchmarkForm(ContractForm):
    """A benchmark with the first version of its contract."""

    slug = SlugField()
    name = forms.CharField(max_length=200)
    description = paragraph("Description")
    is_public = forms.BooleanField(label="Anyone may read the definition; runs and data stay private", required=False)

    field_order = [
        *(
            "slug",
            "name",
            "description",
            "metric",
            "direction",
            "unit",
            "metrics",
            "over_seeds",
            "tie_rule",
            "holdout",
            "train",
            "validation",
            "evaluator",
        ),
        *("counts_all_samples", "opens_at", "closes_at", "wall_seconds", "memory", "runs_per_person", "period", "terms"),
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
