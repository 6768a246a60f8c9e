"""The form that asks for an export."""

from collections.abc import Sequence

from django import forms

from runs.queries.export_files import Choice
from workspaces.forms.resource import why
from workspaces.units import plural, size


class ExportForm(forms.Form):
    carries = forms.ChoiceField(
        label="What travels besides the rows",
        widget=forms.RadioSelect,
        initial="none",
        help_text="Of a restricted dataset nothing travels but its name and the hash of each version, whatever is chosen.",
    )
    reason = why("Where it goes, and why", required=False)

    def __init__(self, *args: object, choices: Sequence[Choice], **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]  # what a form takes
        field = self.fields["carries"]
        assert isinstance(field, forms.ChoiceField)
        field.choices = [(one.value, f"{one.label} ({plural(one.files, 'file', 'files')}, {size(one.bytes)})") for one in choices]
