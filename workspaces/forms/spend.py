"""The form that enters API spend from outside."""

from django import forms

from workspaces.forms.fields import DayField
from workspaces.forms.resource import whole, why
from workspaces.models import Unit


class SpendForm(forms.Form):
    """Money that was spent beside labsite; it counts from its day on the workspace's clock."""

    amount = forms.DecimalField(min_value=0, max_digits=24, decimal_places=9, widget=forms.TextInput(attrs={"inputmode": "decimal"}))
    currency = forms.CharField(max_length=3, min_length=3, initial="EUR", help_text="That in which the pools here count.")
    what = forms.CharField(label="What for", max_length=300)
    spent_on = DayField(label="Spent on", required=False, help_text="Empty: now.")
    run = forms.CharField(label="Run", max_length=80, required=False, help_text="Its id, where it was spent for one; else empty.")

    def clean_amount(self) -> int:
        return whole(self.cleaned_data["amount"], Unit.API_MICROS)

    def clean_currency(self) -> str:
        return str(self.cleaned_data["currency"]).upper()


class TakeBackForm(forms.Form):
    reason = why("Why it is taken back")
