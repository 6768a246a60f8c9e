"""The launch form: what shall run, on what, where, with how much. It asks; `runs.commands.launch` decides."""

import json
from decimal import Decimal
from typing import Any

from django import forms
from django.http import QueryDict

from runs.forms.parameters import PREFIX, as_text, parameter_fields, parameters_of
from runs.launch import LaunchRequest
from runs.queries.launch_choices import OFFERED, LaunchChoices, Pick, artifact_picks, dataset_pick, versions_of
from workspaces.agent_inputs import listed, needs_from
from workspaces.models import AgentVersion
from workspaces.units import MS_PER_HOUR

MOST_NAMED = 100  # inputs that an address may name
SHOWN = 60  # datasets at once; the others are looked for


class Picks(forms.CheckboxSelectMultiple):
    """Inputs to choose, each on a row of its own."""

    template_name = "runs/launch_picks.html"

    def __init__(self) -> None:
        super().__init__()
        self.picks: dict[str, Pick] = {}
        self.find: str | None = None  # what was looked for, where one can look
        self.found = ""  # how many there are, where not all are shown

    def get_context(self, name: str, value: Any, attrs: Any) -> dict[str, Any]:
        return super().get_context(name, value, attrs) | {"find": self.find, "found": self.found}

    def create_option(self, name: str, value: Any, *args: Any, **options: Any) -> dict[str, Any]:
        return super().create_option(name, value, *args, **options) | {"pick": self.picks[str(value)]}


class LaunchForm(forms.Form):
    """Bound to a query string or a POST. Fields for parameters follow the agent version that is chosen.

    A draft may still lack what a launch needs: it is shown while it is being filled in, without complaints about what comes next.
    """

    use_required_attribute = False

    benchmark = forms.ChoiceField(help_text="What it is measured on, under the current contract.")
    contract = forms.IntegerField(
        required=False, min_value=1, max_value=2**31 - 1, label="Contract version", help_text="Empty: the current one."
    )
    agent = forms.ChoiceField(help_text="What runs.")
    version = forms.TypedChoiceField(coerce=int, required=False, empty_value=None, label="Version of the agent")
    datasets = forms.MultipleChoiceField(required=False, widget=Picks, help_text="A run reads them and changes nothing in them.")
    artifacts = forms.MultipleChoiceField(required=False, widget=Picks, label="Artifacts of earlier runs")
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

    def __init__(self, given: QueryDict | None, choices: LaunchChoices, *, is_draft: bool = False) -> None:
        super().__init__(given)
        self.is_draft = is_draft
        self.choices = choices
        if not self._given("contract"):
            del self.fields["contract"]
        self._choose("benchmark", choices.benchmarks, "Choose a benchmark")
        self._choose("agent", choices.agents, "Choose an agent")
        self._choose("pool", choices.pools, "The default pool" if choices.default_pool else "Choose a pool")
        self._offer("datasets", self._with_named(choices.datasets))
        self._narrow(self._given("find").strip())
        self._offer("artifacts", artifact_picks(self._named("artifacts")))
        versions = versions_of(self._given("agent"))
        self._choose("version", [(str(version.number), str(version.number)) for version in versions], "The newest")
        wanted = self._given("version")
        chosen = next((version for version in versions if str(version.number) == wanted), versions[0] if versions else None)
        self.chosen_agent = self._given("agent") if chosen else ""
        self.chosen_schema: dict[str, Any] = chosen.parameter_schema if chosen else {}
        self._say_needs(chosen)
        fields = parameter_fields(self.chosen_schema)
        self.fields.update(fields)
        self.parameter_names = list(fields)
        self.left_out: list[str] = []  # parameters that the address names and this version does not take
        self._spread_parameters(is_known=chosen is not None)
        if is_draft:
            for field in self.fields.values():
                field.required = False

    @property
    def parameter_group(self) -> list[forms.BoundField]:
        return [self[name] for name in self.parameter_names]

    def _given(self, name: str) -> str:
        return str(self.data.get(name, "")) if self.is_bound else ""

    def _named(self, name: str) -> list[str]:
        return list(dict.fromkeys(self.data.getlist(name)[:MOST_NAMED])) if isinstance(self.data, QueryDict) else []

    def _with_named(self, offered: list[Pick]) -> list[Pick]:
        """The newest versions, and those that the address names; a newest one that is named by its number as well stands there once."""
        known = {pick.value for pick in offered}
        named = [pick for name in self._named("datasets") if name not in known for pick in [dataset_pick(name)] if pick]
        twice = {(pick.source, pick.version) for pick in named}
        place = {pick.source: index for index, pick in enumerate(offered)}
        picks = [*named, *(pick for pick in offered if (pick.source, pick.version) not in twice)]
        return sorted(picks, key=lambda pick: place.get(pick.source, -1))

    def _offer(self, name: str, picks: list[Pick]) -> None:
        if not picks and name == "artifacts":
            del self.fields[name]
            return
        self._choose(name, [(pick.value, pick.label) for pick in picks])
        widget = self.fields[name].widget
        assert isinstance(widget, Picks)
        widget.picks = {pick.value: pick for pick in picks}

    def _say_needs(self, version: AgentVersion | None) -> None:
        """What the chosen version must be given stands where inputs are chosen."""
        needs = [need for need in needs_from(version.inputs) if need.required] if version else []
        if needs:
            self.fields["datasets"].help_text = f"This agent needs {listed(needs)}. {self.fields['datasets'].help_text}"

    def _narrow(self, find: str) -> None:
        """Show what is chosen and the first of what was found; the rest can be looked for, and stays a choice."""
        field, chosen = self.fields["datasets"], set(self._named("datasets"))
        widget = field.widget
        assert isinstance(widget, Picks)
        choices = list(widget.choices)
        unchosen = [value for value, _ in choices if value not in chosen]
        shown = chosen.union(unchosen[:SHOWN])
        widget.choices = [(value, label) for value, label in choices if value in shown]
        widget.find = find[:200]
        if len(unchosen) > SHOWN:
            of = f"{OFFERED:,} or more" if len(self.choices.datasets) >= OFFERED else f"{len(unchosen):,}"
            widget.found = f"The first {SHOWN} of {of} are shown; look for the others by name."
        elif find:
            widget.found = f"{len(unchosen):,} found." if unchosen else "No dataset has this in its name or id."

    def _choose(self, name: str, choices: list[tuple[str, str]], empty: str = "") -> None:
        field = self.fields[name]
        assert isinstance(field, forms.ChoiceField)
        field.choices = [("", empty), *choices] if empty else choices

    def _spread_parameters(self, *, is_known: bool) -> None:
        """`parameters={…}` of a link, spread over the fields of single parameters."""
        given = self.data
        if not isinstance(given, QueryDict) or not given.get("parameters") or "parameters" in self.fields:
            return
        try:
            parameters = json.loads(str(given["parameters"]))
        except (ValueError, RecursionError):
            return
        if not isinstance(parameters, dict):
            return
        self.data = spread = given.copy()
        for name, value in list(parameters.items())[:MOST_NAMED]:
            if f"{PREFIX}{name}" not in self.fields:
                self.left_out += [str(name)[:80]] if is_known else []
            elif f"{PREFIX}{name}" not in spread:
                spread[f"{PREFIX}{name}"] = as_text(value)

    @property
    def has_choices(self) -> bool:
        """Is there anything that could run?"""
        return bool(self.choices.benchmarks and self.choices.agents)

    def parameters(self, given: dict[str, Any]) -> dict[str, Any]:
        """The parameters among what was given."""
        return parameters_of(given)

    def request(self, *, without: frozenset[str] = frozenset()) -> LaunchRequest:
        """What is asked for; after `is_valid()`. Fields with a fault, and those of `without`, are left as if nobody had filled them in."""
        given = {name: value for name, value in self.cleaned_data.items() if name not in without}
        hours: Decimal | None = given.get("gpu_hours")
        return LaunchRequest(
            benchmark=given.get("benchmark", ""),
            contract=given.get("contract"),
            agent=given.get("agent", ""),
            agent_version=given.get("version"),
            pool=given.get("pool", ""),
            datasets=tuple(given.get("datasets", ())),
            artifacts=tuple(given.get("artifacts", ())),
            parameters=self.parameters(given),
            seed=given.get("seed"),
            gpu_ms=None if hours is None else int(hours * MS_PER_HOUR),
            name=given.get("name", ""),
            reason=given.get("reason", ""),
        )
