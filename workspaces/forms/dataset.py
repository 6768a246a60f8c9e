"""Forms of datasets and uploads."""

from django import forms

from workspaces.commands.live_dataset import MOST_RECORDS
from workspaces.forms.fields import FilesField, SlugField, paragraph, reason
from workspaces.forms.resource import why
from workspaces.licences import MAX_LENGTH as LICENCE_LENGTH
from workspaces.models import Dataset, DatasetVersion

OF_DATASET = "Empty: that of the dataset."


def licence(hint: str = "") -> forms.CharField:
    words = "An SPDX expression such as CC-BY-4.0, LicenseRef-… for a contract of your own, or “not known”."
    return forms.CharField(max_length=LICENCE_LENGTH, required=False, help_text=f"{words} {hint}".strip())


def evidence(hint: str = "") -> forms.CharField:
    words = "What shows that it is of this origin: a paper, a contract, who looked at it."
    return forms.CharField(max_length=2000, required=False, widget=forms.Textarea(attrs={"rows": 2}), help_text=f"{words} {hint}".strip())


class DatasetEditForm(forms.Form):
    name = forms.CharField(max_length=200)
    description = paragraph("Description", "What is in it, how it was made, what it may be used for.")
    licence = licence()
    reason = reason()


class DatasetForm(DatasetEditForm):
    slug = SlugField()
    origin = forms.ChoiceField(choices=Dataset.Origin.choices)
    evidence = evidence()
    field_order = ["slug", "name", "description", "origin", "evidence", "licence"]
    reason = None  # type: ignore[assignment]  # how Django's forms drop an inherited field


class OriginForm(forms.Form):
    origin = forms.ChoiceField(
        choices=Dataset.Origin.choices,
        widget=forms.RadioSelect,
        help_text="Versions keep what was said of them as they were frozen; the next ones take this.",
    )
    evidence = evidence()
    licence = licence()
    reason = why()


class EgressForm(forms.Form):
    egress = forms.ChoiceField(
        label="What may leave the workspace",
        choices=Dataset.Egress.choices,
        widget=forms.RadioSelect,
        help_text="For exports and shares. What runs made of it, or will make, becomes as strict. Members read it here as before.",
    )
    reason = why()


class UploadForm(forms.Form):
    role = forms.ChoiceField(choices=DatasetVersion.Role.choices, help_text="What runs may use it for. A holdout never trains.")
    file = FilesField(label="Files", help_text="One or several. They become one frozen version, named by its content.")
    source = forms.CharField(
        max_length=1000, required=False, help_text="Where it came from: an address, an instrument, a person, or “not known”."
    )
    licence = licence(OF_DATASET)
    evidence = evidence(OF_DATASET)
    records = forms.IntegerField(
        required=False, min_value=0, max_value=2**53, help_text="Leave it out for CSV, TSV and JSON Lines: those are counted."
    )
    has_header = forms.BooleanField(label="The first line of CSV files names the columns", required=False, initial=True)
    is_archive = forms.BooleanField(
        label="Unpack it: the file is a zip or tar.gz, and the version is what is inside",
        required=False,
        help_text="Plain files and folders only. Left out, an archive is kept as one file.",
    )
    reason = reason()


class LiveForm(forms.Form):
    window_records = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=MOST_RECORDS,
        label="Cut a window once so many records wait",
        help_text="Empty: windows are cut by people only.",
    )
    records_a_day = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=MOST_RECORDS,
        label="Records expected a day",
        help_text="Faster growth is flagged. Empty: what is faster than three times the median of its last four windows.",
    )
    reason = reason()


class WindowForm(forms.Form):
    records = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=MOST_RECORDS,
        label="At least so many records",
        help_text="The oldest pieces that hold so many. Empty: everything that waits.",
    )
    reason = reason()
