"""Which two artifacts are held against each other, and by which sequential test."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from django import forms

from runs.models import Artifact
from runs.policy.sequential import LEAST_RATE, MOST_ELO, MOST_RATE
from runs.queries.arena import Arena
from runs.queries.head_to_head import USUAL, Question
from workspaces.models import NotFound

STARTS = {name: f"{value:g}" for name, value in asdict(USUAL).items()}


class HeadToHeadForm(forms.Form):
    """What the address does not say is the strongest, the strongest of those that it has met, and a test of 0 against 50 Elo."""

    first = forms.ChoiceField(label="Is this one")
    second = forms.ChoiceField(label="stronger than")
    elo0 = forms.FloatField(label="H0, Elo", min_value=-MOST_ELO, max_value=MOST_ELO)
    elo1 = forms.FloatField(label="H1, Elo", min_value=-MOST_ELO, max_value=MOST_ELO)
    alpha = forms.FloatField(label="Error rate α", min_value=LEAST_RATE, max_value=MOST_RATE)
    beta = forms.FloatField(label="Error rate β", min_value=LEAST_RATE, max_value=MOST_RATE)

    def __init__(self, board: Arena, asked: Mapping[str, str]) -> None:
        named = {name: _entrant(board, asked[name]) for name in ("first", "second") if name in asked}
        super().__init__({**STARTS, **asked, **named, **_others(board, named)})
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


def _entrant(board: Arena, text: str) -> str:
    """The id by which it stands in the arena: an artifact of the same content may have another. What is none stays as it was said."""
    try:
        sha = Artifact.objects.find(text).blob.sha256
    except NotFound:
        return text
    return next((artifact.public_id for artifact in board.entrants if artifact.blob.sha256 == sha), text)


def _others(board: Arena, named: Mapping[str, str]) -> dict[str, str]:
    """Whom the address does not name: the best rated of those that the other has met, and of all where it names neither."""
    found = dict(named)
    for name, other in (("first", "second"), ("second", "first")):
        if name not in found:
            opponent = next((player for player in board.players if player.artifact.public_id == found.get(other)), None)
            met = [player.artifact for player in board.players if opponent is None or player.artifact.blob.sha256 in opponent.met]
            left = [artifact for artifact in (*met, *board.entrants) if artifact.public_id != found.get(other)]
            if left:
                found[name] = left[0].public_id
    return found


def _words(artifact: Artifact) -> str:
    return f"{(artifact.name or artifact.path)[:40]} of {artifact.run.name[:60]}"
