"""The form that sets up a contract check from an evaluation."""

from django import forms

from runs.commands.contract_check import MOST_DAYS


class CheckForm(forms.Form):
    tolerance = forms.FloatField(
        min_value=0, help_text="How far a value may lie from this one, either way, before the benchmark is said to have moved."
    )
    interval_days = forms.IntegerField(
        min_value=1, max_value=MOST_DAYS, initial=7, label="Days between two checks", help_text="The first is launched at once."
    )
