"""Forms about what a pool has at work."""

from django import forms

from workspaces.forms.resource import ReasonForm


class StrangerForm(ReasonForm):
    key = forms.CharField(label="Its name", max_length=128, widget=forms.TextInput(attrs={"class": "mono"}))

    field_order = ("key", "reason")
