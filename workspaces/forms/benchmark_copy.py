"""Forms of public definitions: opened to everyone, and imported from another workspace."""

from django import forms

from workspaces.forms.fields import SlugField


class BenchmarkImportForm(forms.Form):
    workspace = forms.CharField(max_length=64, help_text="Id of the workspace that made the benchmark public.")
    benchmark = forms.CharField(max_length=64, help_text="Id of the benchmark there; both stand in the address of its public page.")
    slug = SlugField(required=False)

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]  # passed on as they came
        self.fields["slug"].help_text = "The copy's own id here. Empty: as at its source."


class PublicForm(forms.Form):
    reason = forms.CharField(max_length=1000, help_text="Kept on record with the grant.")
