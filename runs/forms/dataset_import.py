"""Forms that bring a version from elsewhere: from addresses, and from an artifact of a run."""

import re
from collections.abc import Sequence
from typing import Any

from django import forms

from runs.commands.dataset_import import WantedFile
from workspaces.forms.dataset import OF_DATASET, evidence, licence
from workspaces.forms.fields import LinesField, SchemaField, SlugField, reason
from workspaces.models import DatasetVersion, Secret

SHA256 = re.compile(r"[0-9a-fA-F]{64}")


class AddressesField(LinesField):
    """Lines of an address and, after a blank, the SHA-256 that its file has to have; cleans to WantedFiles."""

    def to_python(self, value: Any) -> Any:
        files = []
        for line in super().to_python(value):
            address, *others = line.split()
            if len(others) > 1 or (others and not SHA256.fullmatch(others[0])):
                raise forms.ValidationError(
                    "A line is an address and, where you know it, the file's SHA-256: %(line)s", params={"line": line[:100]}
                )
            files.append(WantedFile(address, sha256=others[0] if others else ""))
        return files


class ImportForm(forms.Form):
    role = forms.ChoiceField(choices=DatasetVersion.Role.choices, help_text="What runs may use it for. A holdout never trains.")
    addresses = AddressesField(
        rows=4,
        help_text="One a line: https://…, s3://bucket/key, or pool://name/path for a file on the machine of a pool, in a folder that is listed for"
        " it. Behind a blank its SHA-256 where you know it. Together they become one version.",
    )
    endpoint = forms.CharField(
        max_length=500, required=False, label="S3 endpoint", help_text="Such as https://minio.example.org. Empty: Amazon's."
    )
    region = forms.CharField(max_length=40, required=False, label="S3 region", help_text="Empty: us-east-1.")
    secret = forms.ChoiceField(required=False, label="S3 keys", help_text="A secret that holds ACCESS_KEY_ID:SECRET_ACCESS_KEY.")
    licence = licence(OF_DATASET)
    evidence = evidence(OF_DATASET)
    records = forms.IntegerField(
        required=False, min_value=0, max_value=2**53, help_text="Leave it out for CSV, TSV and JSON Lines: those are counted."
    )
    has_header = forms.BooleanField(label="The first line of CSV files names the columns", required=False, initial=True)
    reason = reason()

    def __init__(self, *args: Any, secrets: Sequence[Secret], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields["secret"]
        assert isinstance(field, forms.ChoiceField)
        field.choices = [("", "none: read as the public reads it"), *((secret.name, secret.name) for secret in secrets)]
        if not secrets:
            del self.fields["secret"]


class CroissantForm(forms.Form):
    slug = SlugField()
    document = SchemaField(label="Croissant", help_text="The JSON-LD of the data set, version 1.0 or 1.1, as its page offers it.")
    role = forms.ChoiceField(choices=DatasetVersion.Role.choices, help_text="What runs may use it for. A holdout never trains.")
    reason = reason()


class ArtifactForm(forms.Form):
    artifact = forms.CharField(max_length=100, help_text="Its id, such as art_0190…; it stands on the artifact's page.")
    role = forms.ChoiceField(choices=DatasetVersion.Role.choices, help_text="What runs may use it for. A holdout never trains.")
    path = forms.CharField(max_length=1024, required=False, label="Name of the file", help_text="Empty: as the run called it.")
    licence = licence(OF_DATASET)
    evidence = evidence(OF_DATASET)
    records = forms.IntegerField(required=False, min_value=0, max_value=2**53)
    reason = reason()
