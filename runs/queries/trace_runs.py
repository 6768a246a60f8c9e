"""What a trace says of runs: what they did, who or which policy asked for them, and what they said last."""

import uuid
from collections.abc import Collection
from dataclasses import dataclass

from django.urls import reverse

from runs.lifecycle import RunStatus
from runs.models import Run, RunInput, Watch

FIELDS = (
    "number", "status", "kind", "trigger", "agent__name", "agent_version__number", "requested_by__username", "requested_by__display_name",
    "sweep__decision__number", "sweep__decision__policy__name",
)  # fmt: skip
TITLES = {"train": "Trained", "evaluate": "Evaluated", "selfplay": "Self-play"}


@dataclass(frozen=True, slots=True)
class RunRead:
    """`who` asked for it, or the policy's decision that did, at `who_url`; `said`: its last word on its progress, with the code that it ran."""

    run: Run
    who: str
    who_url: str
    said: str
    reads_models: bool

    @property
    def is_good(self) -> bool:
        return self.run.status == RunStatus.SUCCEEDED

    def title(self, *, makes_data: bool) -> str:
        """What it did, in a word: an evaluation that leaves data, and asks no model for it, has chosen among what it read."""
        if self.run.kind == "selfplay" or not makes_data:
            return TITLES.get(self.run.kind, "Made by")
        if self.reads_models:
            return "Made with a model"
        return "Filtered" if self.run.kind == "evaluate" else "Made the data"


def runs_read(keys: Collection[uuid.UUID], workspace: str) -> list[RunRead]:
    """Those of the runs that are here, in three statements."""
    related = ("agent", "agent_version", "requested_by", "sweep__decision__policy")
    rows = list(Run.objects.filter(pk__in=keys).select_related(*related).only(*FIELDS))
    with_models = set(RunInput.objects.filter(run__in=keys, kind="artifact").values_list("run", flat=True))
    said = dict(
        Watch.objects.filter(attempt__run__in=keys).order_by("attempt__number").values_list("attempt__run", "progress_text")
    )  # of the newest attempt
    return [_read(row, workspace, said.get(row.pk, ""), row.pk in with_models) for row in rows]


def _read(row: Run, workspace: str, said: str, reads_models: bool) -> RunRead:
    decision = row.sweep.decision if row.sweep is not None else None
    who, who_url = row.requested_by.label, ""
    if decision is not None:
        who = f"policy {decision.policy.name}, for {who}"
        who_url = reverse("decision", args=[workspace, decision.public_id])
    words = f"{row.agent.name}, version {row.agent_version.number}."
    if row.status != RunStatus.SUCCEEDED:
        words = f"{words} It is {row.get_status_display()}."
    return RunRead(row, who, who_url, f"{words} {said.rstrip('.').capitalize()}." if said else words, reads_models)
