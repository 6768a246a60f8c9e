"""Forms by which people say what holds of a version."""

from django import forms

from runs.models import OverlapCheck
from workspaces.forms.resource import why

LABELS = {
    OverlapCheck.Verdict.CONTAMINATED: "contaminated: it holds what a holdout holds",
    OverlapCheck.Verdict.SUSPICIOUS: "suspicious: nobody is sure",
    OverlapCheck.Verdict.CLEAN: "clean: what was found is no overlap that matters",
    OverlapCheck.Verdict.UNKNOWN: "not known",
}


class VerdictForm(forms.Form):
    verdict = forms.ChoiceField(
        label="What holds",
        required=False,
        choices=[*LABELS.items(), ("", "as the checks say")],
        widget=forms.RadioSelect,
        help_text="What the checks found stays visible beside it. Once they find something else, this word holds no more.",
    )
    reason = why()


class ReuseForm(forms.Form):
    is_reusable = forms.TypedChoiceField(
        label="May it be used elsewhere?",
        choices=[("yes", "reusable"), ("no", "not reusable")],
        coerce=lambda word: word == "yes",
        widget=forms.RadioSelect,
    )
    reason = why()
