"""Forms of an artifact's life."""

from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

from django import forms

from workspaces.forms.fields import DayField
from workspaces.forms.resource import why


class DeleteForm(forms.Form):
    reason = why("Why it may go")


class KeepForm(forms.Form):
    until = DayField(
        label="Keep until the end of",
        required=False,
        help_text="A day on the workspace's clock. Empty: as its kind says, or for ever. What rests on it keeps it longer.",
    )
    reason = why(required=False)

    def instant(self, zone: str) -> datetime | None:
        """The midnight that ends the day, UTC."""
        day = self.cleaned_data["until"]
        if day is None:
            return None
        return datetime.combine(day + timedelta(days=1), time(), ZoneInfo(zone or "UTC")).astimezone(UTC)


class DaysForm(forms.Form):
    days = forms.CharField(
        label="Days by kind",
        required=False,
        max_length=4000,
        widget=forms.Textarea(attrs={"rows": 6, "class": "mono"}),
        help_text="One line for each kind, such as “checkpoint: 30”. A kind that is not named stays for ever.",
    )
    reason = why()

    def clean_days(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for line in filter(None, map(str.strip, self.cleaned_data["days"].splitlines())):
            kind, _, count = (part.strip() for part in line.rpartition(":"))
            if not kind or not (count.isascii() and count.isdigit() and len(count) < 8):
                raise forms.ValidationError(f"“{line[:60]}” is no kind with a number of days; write “checkpoint: 30”.")
            if kind in found:
                raise forms.ValidationError(f"{kind[:40]} is named twice.")
            found[kind] = int(count)
        return found


def lines_of(days: dict[str, int]) -> str:
    """What the form shows of the days that are set."""
    return "\n".join(f"{kind}: {count}" for kind, count in sorted(days.items()))
