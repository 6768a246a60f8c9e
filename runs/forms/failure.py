"""The form by which somebody takes note of why runs fail."""

from django import forms

from workspaces.forms.resource import why


class NoteForm(forms.Form):
    reason = why("What comes of it")
