"""Forms by which people and groups are let into a workspace."""

from typing import Any

from django import forms

from workspaces.access import Kind, Role, people_groups

KINDS_HINT = "Leave all empty for every kind. Ticks narrow the role to these kinds; they never widen it."


def role_field() -> forms.ChoiceField:
    return forms.ChoiceField(choices=Role.choices, initial=Role.RESEARCHER, label="Role")


def kinds_field() -> forms.MultipleChoiceField:
    return forms.MultipleChoiceField(
        choices=[(kind.value, kind.value) for kind in Kind],
        required=False,
        label="Only for these kinds",
        help_text=KINDS_HINT,
        widget=forms.CheckboxSelectMultiple,
    )


class InviteForm(forms.Form):
    prefix = "invite"

    email = forms.EmailField(max_length=254, label="E-mail address", widget=forms.EmailInput(attrs={"autocomplete": "off"}))
    role = role_field()
    days = forms.IntegerField(
        min_value=1, max_value=30, initial=7, label="The link works for", widget=forms.NumberInput(attrs={"data-unit": "days"})
    )
    kinds = kinds_field()


class AddMemberForm(forms.Form):
    prefix = "add"

    user = forms.CharField(max_length=150, required=False, label="User name of a person or service account", empty_value=None)
    group = forms.TypedChoiceField(required=False, label="Or a group of people", coerce=int, empty_value=None)
    role = role_field()
    kinds = kinds_field()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        group = self.fields["group"]
        assert isinstance(group, forms.TypedChoiceField)
        group.choices = [("", "none"), *((group.pk, group.name) for group in people_groups())]

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if not self.errors and bool(cleaned.get("user")) == bool(cleaned.get("group")):
            raise forms.ValidationError("Name one person or choose one group.")
        return cleaned


class ServiceAccountForm(forms.Form):
    prefix = "service"

    username = forms.CharField(max_length=64, label="User name", help_text="Lower-case letters, digits, dots, - and _.")
    display_name = forms.CharField(max_length=120, label="Name to show")
    role = forms.ChoiceField(choices=[(Role.RESEARCHER, "researcher"), (Role.VIEWER, "viewer")], label="Role")


class ChangeMemberForm(forms.Form):
    role = role_field()
    kinds = kinds_field()


class AcceptForm(forms.Form):
    username = forms.CharField(
        max_length=64,
        label="User name",
        widget=forms.TextInput(attrs={"autocomplete": "username"}),
        help_text="Lower-case letters, digits, dots, - and _.",
    )
    display_name = forms.CharField(
        max_length=120, label="Your name, as others see it", widget=forms.TextInput(attrs={"autocomplete": "name"})
    )
    password = forms.CharField(
        max_length=200,
        strip=False,
        label="Password",
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text="At least 12 characters, not only digits, nothing common, nothing like your name.",
    )
    password_again = forms.CharField(
        max_length=200, strip=False, label="Password again", widget=forms.PasswordInput(attrs={"autocomplete": "new-password"})
    )

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if "password" in cleaned and "password_again" in cleaned and cleaned["password"] != cleaned["password_again"]:
            self.add_error("password_again", "This differs from the password above.")
        return cleaned
