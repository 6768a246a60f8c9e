"""The form that confirms a withdrawal of exactly what was shown."""

from django import forms

from workspaces.forms.resource import why


class WithdrawForm(forms.Form):
    reason = why("Why it is not to be rested on")
    fingerprint = forms.CharField(widget=forms.HiddenInput, max_length=64)  # of what was shown: nothing is withdrawn unseen here
