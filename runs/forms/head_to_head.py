"""Which two artifacts are held against each other, and by which sequential test."""

from collections.abc import Mapping, Sequence

from django import forms

from runs.models import Artifact
from runs.queries.arena import Arena
from runs.queries.head_to_head import MOST_ELO, RATES, Question

STARTS = {"elo0": "0", "elo1": "50", "alpha": "0.05", "beta": "0.05"}


class HeadToHeadForm(forms.Form):
    """What the address does not say is the strongest, the strongest of those that it has met, and a test of 0 against 50 Elo."""

    first = forms.ChoiceField(label="Is this one")
    second = forms.ChoiceField(label="stronger than")
    elo0 = forms.FloatField(label="H0, Elo", min_value=-MOST_ELO, max_value=MOST_ELO)
    elo1 = forms.FloatField(label="H1, Elo", min_value=-MOST_ELO, max_value=MOST_ELO)
    alpha = forms.FloatField(label="Error rate α", min_value=RATES[0], max_value=RATES[1])
    beta = forms.FloatField(label="Error rate β", min_value=RATES[0], max_value=RATES[1])

    def __init__(self, board: Arena, asked: Mapping[str, str]) -> None:
        super().__init__({**STARTS, **_two(board), **asked})
        entrants = [(artifact.public_id, _words(artifact)) for artifact in board.entrants]
        for name in ("first", "second"):
            field = self.fields[name]
            assert isinstance(field, forms.ChoiceField)
            field.choices = entrants
            field.error_messages["invalid_choice"] = "No artifact of this id has played here."
        self._by_id = {artifact.public_id: artifact for artifact in board.entrants}
        for name in STARTS:
            self.fields[name].widget.attrs["step"] = "any"

    @property
    def both(self) -> tuple[Artifact, Artifact]:
        return self._by_id[self.cleaned_data["first"]], self._by_id[self.cleaned_data["second"]]

    @property
    def question(self) -> Question:
        return Question(**{name: self.cleaned_data[name] for name in STARTS})

    @property
    def faults(self) -> Sequence[tuple[str, str]]:
        """(label, what is wrong with it)"""
        return [(str(self[name].label), str(fault)) for name in self.fields for fault in self[name].errors]


def _two(board: Arena) -> dict[str, str]:
    if not board.players:
        return {}
    first = board.players[0]
    met = (player for player in board.players[1:] if player.artifact.blob.sha256 in first.met)
    second = next(met, first)
    return {"first": first.artifact.public_id, "second": second.artifact.public_id}


def _words(artifact: Artifact) -> str:
    return f"{(artifact.name or artifact.path)[:40]} of {artifact.run.name[:60]}"
