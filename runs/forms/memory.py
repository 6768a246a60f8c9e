"""Forms of memory: writing it, vouching for it, and until when it holds."""

import json
from typing import Any

from django import forms

from runs.commands.memory import GIVEN, MOST_TEXT, Said
from runs.models import MemoryEntry, MemoryEvidence, Trust
from workspaces.forms.fields import InstantField, SchemaField


class EntryForm(forms.Form):
    title = forms.CharField(max_length=200, help_text="The one sentence that somebody should know.")
    kind = forms.ChoiceField(choices=MemoryEntry.EntryKind, help_text="Failed attempts are kept for people; no policy reads them.")
    collection = forms.SlugField(max_length=64, help_text="Entries that belong together, such as failed-search-configs.")
    text = forms.CharField(
        max_length=MOST_TEXT,
        required=False,
        widget=forms.Textarea(attrs={"rows": 8}),
        help_text="Shown as it is written. Nothing in it is carried out, whatever it says.",
    )
    scope = forms.ChoiceField(choices=MemoryEntry.Scope, help_text="Whom it is about.")
    benchmark = forms.CharField(max_length=100, required=False, help_text="Short name, if it is about one benchmark.")
    agent = forms.CharField(max_length=100, required=False, help_text="Short name, if it is about one agent.")
    configuration = SchemaField(help_text='Optional: names and plain values, such as {"simulations": 200}, to find similar ones by.')
    evidence = forms.CharField(
        max_length=4000,
        required=False,
        widget=forms.Textarea(attrs={"rows": 3, "class": "code"}),
        help_text="What it rests on, one a line: run, evaluation, artifact or dataset_version, and its id.",
    )
    valid_from = InstantField(required=False, label="Holds from")
    valid_until = InstantField(required=False, label="Holds until")
    review_due = InstantField(required=False, label="Review due", help_text="From then on it is shown as stale until somebody has looked.")

    def clean_evidence(self) -> tuple[tuple[str, str], ...]:
        lines = [line.split() for line in self.cleaned_data["evidence"].splitlines() if line.strip()]
        for line in lines:
            if len(line) != 2 or line[0] not in MemoryEvidence.KINDS:
                raise forms.ValidationError("Each line is one of run, evaluation, artifact, dataset_version, and an id.")
        return tuple((kind, key) for kind, key in lines)

    def said(self) -> Said:
        """What was entered, for the command."""
        return Said(**self.cleaned_data)


def entry_initial(entry: MemoryEntry, evidence: list[MemoryEvidence]) -> dict[str, Any]:
    """What the form of the next revision begins with."""
    names = ("title", "kind", "collection", "text", "scope", "valid_from", "valid_until", "review_due")
    return {
        **{name: getattr(entry, name) for name in names},
        "benchmark": entry.benchmark.slug if entry.benchmark else "",
        "agent": entry.agent.slug if entry.agent else "",
        "configuration": json.dumps(entry.configuration, ensure_ascii=False, indent=2) if entry.configuration else "",
        "evidence": "\n".join(f"{one.kind} {one.subject_id.hex}" for one in evidence),
    }


class ReviewForm(forms.Form):
    """`content_hash` is that of what the reviewer was shown."""

    trust = forms.ChoiceField(choices=[(trust.value, trust.label) for trust in Trust if trust in GIVEN])
    comment = forms.CharField(max_length=1000, label="Why", help_text="What you looked at; it stands on the entry's page.")
    review_due = InstantField(required=False, label="Review again by")
    content_hash = forms.CharField(max_length=64, widget=forms.HiddenInput)


class DatesForm(forms.Form):
    valid_from = InstantField(required=False, label="Holds from")
    valid_until = InstantField(required=False, label="Holds until")
    review_due = InstantField(required=False, label="Review due")
    reason = forms.CharField(max_length=1000, label="Why")
