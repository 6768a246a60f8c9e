"""Forms by which operators change the queue."""

from typing import Any

from django import forms

from runs.commands.queue import LEAST, MOST
from workspaces.forms.resource import why
from workspaces.models import Pool


class PriorityForm(forms.Form):
    priority = forms.IntegerField(
        label="Priority", min_value=LEAST, max_value=MOST, widget=forms.NumberInput(attrs={"step": 1}),
        help_text="Higher goes first; 0 is usual.",
    )  # fmt: skip
    reason = why()


class PriorityLimitForm(forms.Form):
    limit = forms.IntegerField(label="Highest priority without an approver", min_value=0, max_value=MOST)
    reason = why()


class MoveForm(forms.Form):
    pool = forms.ChoiceField(label="To the pool")
    reason = why()

    def __init__(self, *args: Any, pools: list[Pool], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        choice = self.fields["pool"]
        assert isinstance(choice, forms.ChoiceField)
        choice.choices = [(pool.slug, f"{pool.slug}, {pool.slots} slots, {pool.get_isolation_display()}") for pool in pools]
