"""Forms of agents and their versions."""

from typing import Any

from django import forms

from workspaces.agent_inputs import Need, need_of
from workspaces.forms.fields import FilesField, LinesField, NamesField, SchemaField, SlugField, paragraph, reason
from workspaces.models import AgentVersion, Pool

MEBIBYTE = 1_048_576


class AgentEditForm(forms.Form):
    name = forms.CharField(max_length=200)
    part = forms.CharField(
        label="Part in the laboratory", max_length=40, required=False, help_text="Such as teacher, student, judge or worker."
    )
    description = paragraph("Description")
    reason = reason()


class AgentForm(AgentEditForm):
    slug = SlugField()
    field_order = ["slug"]
    reason = None  # type: ignore[assignment]  # how Django's forms drop an inherited field


class AgentVersionForm(forms.Form):
    """How an agent runs from now on. `pools` are those of the workspace."""

    argv = LinesField(label="Command", help_text="One argument a line, such as python and then train.py. No shell reads it.")
    bundle = FilesField(label="Code", help_text="A zip or tar.gz of plain files, or the files themselves; 64 MiB and 1,000 files at most.")
    kind = forms.CharField(max_length=20, initial="train", help_text="train, evaluate, selfplay, …")
    parameter_schema = SchemaField(
        label="Parameters", help_text="JSON Schema, draft 2020-12, of an object. Empty: a run takes no parameters."
    )
    inputs = LinesField(
        required=False,
        help_text="What a run needs, one a line: dataset or artifact, then perhaps a role (train, validation, holdout; of an artifact its kind),"
        " such as dataset train or artifact model. A dataset of its own: dataset named self-play. What it can do without ends in optional.",
    )
    outputs = LinesField(required=False, help_text="One a line: a pattern in outputs/, then perhaps its kind, such as model/*.json model.")
    environment = LinesField(required=False, help_text="One a line: NAME=value. Plain values only; secrets are named below.")
    pools = forms.MultipleChoiceField(
        label="May run on", required=False, widget=forms.CheckboxSelectMultiple, help_text="None chosen: every pool of the workspace."
    )
    secrets = NamesField(required=False, max_length=3000, help_text="Names of secrets that it reads, never their values.")
    tools = NamesField(required=False, max_length=3000, help_text="Names of tools that it may call.")
    slots = forms.IntegerField(min_value=1, max_value=1024, initial=1)
    wall_seconds = forms.IntegerField(
        label="Wall limit", min_value=1, max_value=2_592_000, initial=3600, widget=forms.NumberInput(attrs={"data-unit": "seconds"})
    )
    memory_mebibytes = forms.IntegerField(
        label="Memory", required=False, min_value=1, max_value=16_777_216, widget=forms.NumberInput(attrs={"data-unit": "MiB"})
    )
    completion = forms.ChoiceField(label="Succeeds on", choices=AgentVersion.Completion.choices)
    reason = reason()

    def __init__(self, *args: Any, pools: list[Pool], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.by_key = {str(pool.pk): pool for pool in pools}
        field = self.fields["pools"]
        assert isinstance(field, forms.MultipleChoiceField)
        field.choices = [(key, pool.slug) for key, pool in self.by_key.items()]

    def clean_inputs(self) -> list[Need]:
        try:
            return [need_of(line) for line in self.cleaned_data["inputs"]]
        except ValueError as fault:
            raise forms.ValidationError(str(fault)) from fault

    def clean_outputs(self) -> list[dict[str, str]]:
        outputs = []
        for line in self.cleaned_data["outputs"]:
            glob, _, kind = line.partition(" ")
            outputs.append({"glob": glob, "kind": kind.strip() or "file"})
        return outputs

    def clean_environment(self) -> dict[str, str]:
        pairs = [line.partition("=") for line in self.cleaned_data["environment"]]
        if wrong := next((name for name, equals, _ in pairs if not equals), None):
            raise forms.ValidationError("%(line)s has no = in it.", params={"line": wrong[:80]})
        return {name.strip(): value for name, _, value in pairs}

    def version(self) -> dict[str, Any]:
        """Arguments of the version for its command, but for the files."""
        kept = (
            "argv",
            "kind",
            "parameter_schema",
            "inputs",
            "outputs",
            "environment",
            "secrets",
            "tools",
            "slots",
            "wall_seconds",
            "completion",
            "reason",
        )
        memory = self.cleaned_data["memory_mebibytes"]
        return {
            **{name: self.cleaned_data[name] for name in kept},
            "pools": [self.by_key[key] for key in self.cleaned_data["pools"]],
            "memory_bytes": memory * MEBIBYTE if memory else None,
        }
