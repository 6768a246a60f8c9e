"""A refused command, shown in the form that asked for it."""

from django import forms

from workspaces.audit import Refusal


def show_refusal(form: forms.Form, refusal: Refusal) -> None:
    """Put the reasons beside the field that they are about, else above the form."""
    field = refusal.field if refusal.field in form.fields else None
    for reason in refusal.reasons:
        form.add_error(field, reason)
