"""Forms by which a workspace is created and settled, one for each step that labsite asks for itself."""

from typing import Any

from django import forms
from django.conf import settings

from workspaces.models import Workspace
from workspaces.windows import zone_names

DAYS = [(0, "Monday"), (1, "Tuesday"), (2, "Wednesday"), (3, "Thursday"), (4, "Friday"), (5, "Saturday"), (6, "Sunday")]


class NewWorkspaceForm(forms.Form):
    name = forms.CharField(max_length=200, label="Name")
    slug = forms.CharField(
        max_length=64, label="Short name, for addresses and scripts", help_text="Lower-case letters, digits, - and _. It stays."
    )


class NameForm(forms.Form):
    name = forms.CharField(max_length=200, label="Name")


class BillingForm(forms.Form):
    billing_account = forms.CharField(max_length=200, label="Billing account", help_text="Who pays.")
    cost_centre = forms.CharField(max_length=200, label="Cost centre")


class BoundaryForm(forms.Form):
    boundary_kind = forms.ChoiceField(choices=Workspace.BoundaryKind.choices, label="This workspace is the boundary of a")
    boundary_reason = forms.CharField(
        max_length=1000,
        label="Why it is one",
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text="Split where admins, data, deletion duties, billing, secrets or compute contracts differ; not for every benchmark.",
    )


class ZoneForm(forms.Form):
    zone = forms.CharField(
        max_length=64, label="Time zone", help_text="An IANA name, such as Europe/Berlin.", widget=forms.TextInput(attrs={"list": "zones"})
    )
    week_start = forms.TypedChoiceField(choices=DAYS, coerce=int, label="The week begins on")

    @staticmethod
    def zones() -> list[str]:
        return sorted(name for name in zone_names() if "/" in name and not name.startswith(("Etc/", "SystemV/")))


class VisibilityForm(forms.Form):
    visibility = forms.ChoiceField(choices=Workspace.Visibility.choices, label="Who may see what is made here", widget=forms.RadioSelect)


class RegionForm(forms.Form):
    region = forms.ChoiceField(label="Store in which every file lies", help_text="Chosen once; it stays.")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        region = self.fields["region"]
        assert isinstance(region, forms.ChoiceField)
        region.choices = [(name, name) for name in sorted(settings.LABSITE_REGIONS)]


SETTLING: dict[str, type[forms.Form]] = {
    "name": NameForm,
    "billing": BillingForm,
    "boundary": BoundaryForm,
    "zone": ZoneForm,
    "visibility": VisibilityForm,
    "region": RegionForm,
}


def settling_form(step: str, workspace: Workspace, bound: Any = None) -> forms.Form:
    """The form of one step, showing what the workspace has now."""
    form = SETTLING[step]
    return form(bound, initial={name: getattr(workspace, name) for name in form.base_fields}, auto_id=f"id_{step}_%s")


class PreferencesForm(forms.Form):
    display_name = forms.CharField(max_length=120, label="Your name, as others see it")
    theme = forms.ChoiceField(
        choices=[("auto", "As the device"), ("light", "Light"), ("dark", "Dark")],
        label="Theme",
        widget=forms.RadioSelect,
        help_text="A device where you choose another theme in its menu keeps that one.",
    )
    density = forms.ChoiceField(
        choices=[("comfortable", "Comfortable"), ("compact", "Compact")],
        label="Density",
        widget=forms.RadioSelect,
        help_text="Compact shows more rows on a screen.",
    )
    zone = forms.CharField(
        max_length=64,
        required=False,
        label="Your clock",
        help_text="An IANA time zone for pages outside a workspace, such as Europe/Berlin; empty for UTC. Inside, the workspace’s own clock counts.",
        widget=forms.TextInput(attrs={"list": "zones"}),
    )
    has_shortcuts = forms.BooleanField(required=False, label="Keyboard shortcuts, on devices that have not chosen otherwise")
