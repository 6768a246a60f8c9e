"""The form that archives a workspace."""

from django import forms

from workspaces.forms.resource import why


class ArchiveForm(forms.Form):
    running = forms.ChoiceField(
        label="Runs at work",
        choices=[("go_on", "go on to their end, and keep what they make"), ("cancel", "are cancelled")],
        initial="go_on",
        widget=forms.RadioSelect,
        help_text="A run that is lost or interrupted after this is not started again.",
    )
    reason = why()
