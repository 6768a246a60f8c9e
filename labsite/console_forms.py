"""Forms of the operators' console."""

from typing import Any

from django import forms

from runs.forms.policy import read_json
from workspaces.access import SiteRole
from workspaces.commands.engine import MAX_WEIGHT
from workspaces.models import Engine, User


class PersonForm(forms.Form):
    username = forms.CharField(max_length=64, label="User name", help_text="Lower-case letters, digits, dots, - and _.")
    display_name = forms.CharField(max_length=120, required=False, label="Name to show")
    email = forms.EmailField(max_length=254, required=False, label="E-mail address")
    kind = forms.ChoiceField(
        choices=[(User.Kind.PERSON, "a person, who signs in"), (User.Kind.SERVICE, "a service account, with tokens only")], label="This is"
    )


class SiteRolesForm(forms.Form):
    roles = forms.MultipleChoiceField(choices=SiteRole.choices, required=False, label="This person", widget=forms.CheckboxSelectMultiple)


class GroupForm(forms.Form):
    name = forms.CharField(max_length=120, label="Name")


class GroupMemberForm(forms.Form):
    username = forms.CharField(max_length=150, label="User name")


class EngineForm(forms.Form):
    slug = forms.CharField(max_length=64, label="Short name")
    slots = forms.IntegerField(min_value=1, max_value=1000, label="Attempts at once, over all workspaces")
    gpu_kind = forms.CharField(max_length=60, required=False, label="GPU kind", help_text="Empty for a machine without one.")
    kind = forms.ChoiceField(
        choices=[
            (Engine.Kind.LOCAL, "this machine itself"),
            (Engine.Kind.SSH, "another host itself, by SSH"),
            (Engine.Kind.SLURM, "Slurm"),
            (Engine.Kind.RAY, "Ray"),
        ],
        label="What starts runs",
        required=False,
    )
    host = forms.CharField(
        max_length=255, required=False, label="Host",
        help_text="Name or address of the machine that is reached by SSH. Slurm and Ray: empty where this machine reaches them itself.",
    )  # fmt: skip
    port = forms.IntegerField(min_value=1, max_value=65535, initial=22, label="Port", required=False)
    host_key = forms.CharField(
        max_length=4000, required=False, label="Host key", widget=forms.Textarea(attrs={"rows": 3, "spellcheck": "false"}),
        help_text="The line of ssh-keyscan, compared on the host itself. A host that shows another key is not spoken to.",
    )  # fmt: skip

    jobs_url = forms.CharField(
        max_length=300, required=False, label="Jobs API of Ray",
        help_text="As the machine sees it that asks, such as http://127.0.0.1:8265. Whoever reaches it can run anything there.",
    )  # fmt: skip

    field_order = ("slug", "kind", "host", "port", "host_key", "jobs_url", "slots", "gpu_kind")

    def clean_kind(self) -> str:
        return self.cleaned_data["kind"] or Engine.Kind.LOCAL

    def clean_port(self) -> int:
        return self.cleaned_data["port"] or 22


class PolicyForm(forms.Form):
    """What the installation demands of every run."""

    max_wall_seconds = forms.IntegerField(
        min_value=1, max_value=2_592_000, required=False, label="Longest wall limit", widget=forms.NumberInput(attrs={"data-unit": "seconds"}),
        help_text="A run that asks for more is refused. Empty: no limit of the installation.",
    )  # fmt: skip
    forbids_no_isolation = forms.BooleanField(required=False, label="Refuse runs on pools without isolation")


class RulesForm(forms.Form):
    """What the installation demands of every policy, as its document."""

    document = forms.CharField(
        max_length=20_000, label="Rules", widget=forms.Textarea(attrs={"rows": 14, "class": "code", "spellcheck": "false"}),
        help_text="JSON: paused, forbidden_actions, forbidden_triggers, gates by action, acts_a_day and gpu_hours_a_week of one policy.",
    )  # fmt: skip
    reason = forms.CharField(max_length=1000, label="Why")

    def clean_document(self) -> dict[str, Any]:
        return read_json(self.cleaned_data["document"])


class StopForm(forms.Form):
    reason = forms.CharField(max_length=300, label="Why")


class RulesDecisionForm(forms.Form):
    comment = forms.CharField(max_length=1000, required=False, label="Comment", help_text="Needed where you refuse.")


class EngineChangeForm(forms.Form):
    """What of an engine can be put right; an empty field leaves it as it is."""

    slots = forms.IntegerField(min_value=1, max_value=1000, label="Attempts at once", required=False)
    host_key = forms.CharField(max_length=4000, label="Host key", required=False)
    jobs_url = forms.CharField(max_length=300, label="Jobs API of Ray", required=False)


class WeightForm(forms.Form):
    weight = forms.IntegerField(min_value=1, max_value=MAX_WEIGHT, label="Weight on shared engines")
