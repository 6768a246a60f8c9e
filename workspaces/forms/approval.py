"""Forms around requests: who must approve a kind of them, and who decides while one is away."""

from datetime import UTC, datetime, time, timedelta
from typing import Any

from django import forms

from workspaces.commands.approval_rule import LONGEST_HOURS, MOST_APPROVERS
from workspaces.forms.fields import DayField
from workspaces.forms.resource import why
from workspaces.models import Approval
from workspaces.windows import clock_of


class RuleForm(forms.Form):
    approvers = forms.IntegerField(
        label="How many approve",
        min_value=1,
        max_value=MOST_APPROVERS,
        help_text="More than before binds what waits already; fewer does not.",
    )
    role = forms.ChoiceField(label="Whose approval counts", choices=Approval.Role.choices, help_text="Anyone who may approve can refuse.")
    hours = forms.IntegerField(
        label="Expires after",
        min_value=1,
        max_value=LONGEST_HOURS,
        widget=forms.NumberInput(attrs={"data-unit": "hours"}),
        help_text="Counted from the request; holds for what is asked from now on.",
    )
    reason = why()


class DelegationForm(forms.Form):
    """Days are those of the workspace's zone; the last one is included."""

    username = forms.ChoiceField(label="Who decides for you")
    first = DayField(label="From")
    last = DayField(label="Until the end of")
    reason = why("Why", required=False)

    def __init__(self, *args: Any, people: list[tuple[str, str]], zone: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.zone = zone
        field = self.fields["username"]
        assert isinstance(field, forms.ChoiceField)
        field.choices = people

    def clean(self) -> dict[str, Any]:
        found = super().clean() or {}
        if found.get("first") and found.get("last"):
            clock = clock_of(self.zone)
            found["starts_at"] = datetime.combine(found["first"], time(), tzinfo=clock).astimezone(UTC)
            found["ends_at"] = datetime.combine(found["last"] + timedelta(days=1), time(), tzinfo=clock).astimezone(UTC)
        return found
