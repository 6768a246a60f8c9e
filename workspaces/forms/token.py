"""The form that makes a token."""

from typing import Any

from django import forms

from workspaces.access import Kind

KIND_CHOICES = [(kind.value, kind.value) for kind in Kind]


class TokenForm(forms.Form):
    name = forms.CharField(max_length=120, label="Name", help_text="What it is for, such as “nightly upload”.")
    holder = forms.ChoiceField(label="Held by")
    days = forms.IntegerField(
        min_value=1, max_value=365, initial=90, label="It works for", widget=forms.NumberInput(attrs={"data-unit": "days"})
    )
    reads = forms.MultipleChoiceField(choices=KIND_CHOICES, required=False, label="It may read", widget=forms.CheckboxSelectMultiple)
    writes = forms.MultipleChoiceField(
        choices=KIND_CHOICES,
        required=False,
        label="It may write",
        widget=forms.CheckboxSelectMultiple,
        help_text="Writing includes reading. A token never does more than its holder may.",
    )

    def __init__(self, *args: Any, holders: list[tuple[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        holder = self.fields["holder"]
        assert isinstance(holder, forms.ChoiceField)
        holder.choices = holders
        if len(holders) == 1:
            holder.widget = holder.hidden_widget()
            holder.initial = holders[0][0]

    def scopes(self) -> list[str]:
        return [f"{kind}:{access}" for access, field in (("read", "reads"), ("write", "writes")) for kind in self.cleaned_data[field]]
