"""The launch form: what shall run, on what, where, with how much. It asks; `runs.commands.launch` decides."""

import json
import uuid
from decimal import Decimal
from typing import Any

from django import forms
from django.http import QueryDict

from runs.forms.parameters import PREFIX, as_text, parameter_fields, parameters_of
from runs.launch import LaunchRequest
from runs.queries.launch_choices import LaunchChoices, artifact_label, dataset_label, versions_of

MS_PER_HOUR = 3_600_000


class LaunchForm(forms.Form):
    """Bound to a query string or a POST. Fields for parameters follow the agent version that is chosen."""

    use_required_attribute = False

    benchmark = forms.ChoiceField(help_text="What it is measured on, under the current contract.")
    agent = forms.ChoiceField(help_text="What runs.")
    version = forms.TypedChoiceField(coerce=int, required=False, empty_value=None, label="Version of the agent")
    datasets = forms.MultipleChoiceField(required=False, widget=forms.CheckboxSelectMultiple, help_text="Their newest versions, read-only.")
    artifacts = forms.MultipleChoiceField(required=False, widget=forms.CheckboxSelectMultiple, label="Artifacts of earlier runs")
    pool = forms.ChoiceField(required=False, help_text="Where it runs.")
    gpu_hours = forms.DecimalField(
        required=False,
        min_value=Decimal(0),
        max_digits=12,
        decimal_places=6,
        label="Budget",
        help_text="Empty: what the agent's own wall limit needs. It is reserved now; what is not used goes back.",
        widget=forms.NumberInput(attrs={"data-unit": "GPU-hours", "step": "any"}),
    )
    seed = forms.IntegerField(required=False, min_value=0, max_value=2**63 - 1)
    name = forms.CharField(required=False, max_length=200, help_text="Empty: the agent's name and a number.")
    reason = forms.CharField(required=False, max_length=1000, label="Why", help_text="Stands on the run's page and in the record.")

    def __init__(self, given: QueryDict | None, choices: LaunchChoices) -> None:
        super().__init__(_with_parameters(given))
        self._choose("benchmark", choices.benchmarks, "Choose a benchmark")
        self._choose("agent", choices.agents, "Choose an agent")
        self._choose("pool", choices.pools, "The default pool" if choices.default_pool else "Choose a pool")
        self._choose("datasets", [*choices.datasets, *self._named("datasets", dataset_label, choices.datasets)])
        artifacts = self._named("artifacts", _label_of_artifact, [])
        if artifacts:
            self._choose("artifacts", artifacts)
        else:
            del self.fields["artifacts"]
        versions = versions_of(self._given("agent"))
        self._choose("version", [(str(version.number), str(version.number)) for version in versions], "The newest")
        wanted = self._given("version")
        chosen = next((version for version in versions if str(version.number) == wanted), versions[0] if versions else None)
        self.chosen_schema: dict[str, Any] = chosen.parameter_schema if chosen else {}
        self.parameter_names: list[str] = []
        for name, field in parameter_fields(self.chosen_schema).items():
            self.fields[name] = field
            self.parameter_names.append(name)

    @property
    def parameter_group(self) -> list[forms.BoundField]:
        return [self[name] for name in self.parameter_names]

    def _given(self, name: str) -> str:
        return str(self.data.get(name, "")) if self.is_bound else ""

    def _named(self, name: str, label: Any, offered: list[tuple[str, str]]) -> list[tuple[str, str]]:
        """Choices that the address names beyond those that are offered."""
        if not isinstance(self.data, QueryDict):
            return []
        known = {value for value, _ in offered}
        asked = [value for value in dict.fromkeys(self.data.getlist(name)[:100]) if value not in known]
        return [(value, words) for value in asked for words in [label(value)] if words]

    def _choose(self, name: str, choices: list[tuple[str, str]], empty: str = "") -> None:
        field = self.fields[name]
        assert isinstance(field, forms.ChoiceField)
        field.choices = [("", empty), *choices] if empty else choices

    def request(self) -> LaunchRequest:
        """What is asked for; after `is_valid()`."""
        given = self.cleaned_data
        hours: Decimal | None = given["gpu_hours"]
        return LaunchRequest(
            benchmark=given["benchmark"],
            agent=given["agent"],
            agent_version=given["version"],
            pool=given["pool"],
            datasets=tuple(given["datasets"]),
            artifacts=tuple(given.get("artifacts", ())),
            parameters=parameters_of(given),
            seed=given["seed"],
            gpu_ms=None if hours is None else int(hours * MS_PER_HOUR),
            name=given["name"],
            reason=given["reason"],
        )


def _with_parameters(given: QueryDict | None) -> QueryDict | None:
    """`parameters={…}` of a link, spread over the fields of single parameters as well."""
    if given is None or not given.get("parameters"):
        return given
    try:
        parameters = json.loads(str(given["parameters"]))
    except (ValueError, RecursionError):
        return given
    if not isinstance(parameters, dict):
        return given
    spread = given.copy()
    for name, value in list(parameters.items())[:100]:
        if f"{PREFIX}{name}" not in spread:
            spread[f"{PREFIX}{name}"] = as_text(value)
    return spread


def _label_of_artifact(text: str) -> str | None:
    try:
        return artifact_label(uuid.UUID(text))
    except ValueError:
        return None
