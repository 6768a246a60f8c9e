"""The form by which somebody says that they have seen a run."""

from django import forms

from workspaces.forms.resource import why


class ReviewForm(forms.Form):
    comment = why("What came of it")
