"""Forms of a promotion."""

from django import forms

from workspaces import ids
from workspaces.forms.resource import why


class ProposeForm(forms.Form):
    name = forms.CharField(
        label="As",
        max_length=64,
        initial="champion",
        validators=[ids.validate_slug],
        help_text="What it is promoted as: one artifact stands under a name at a time, and its address stays the same.",
    )
    reason = why("Why it should stand there", required=False)


class WithdrawForm(forms.Form):
    reason = why("Why nobody should rest on it any more")
