"""An artifact that may be promoted: made by a run that was kept apart, of data with a known licence, and measured."""

from typing import Any

from runs.commands.promotion import propose_promotion
from runs.models import Artifact, Evaluation, Promotion, Run, RunInput
from tests.factories_pages import add_artifact, copy_runs, score_runs
from tests.factories_runs import Laboratory, launch
from workspaces.access import Actor, Kind, Permission
from workspaces.audit import Draft, command
from workspaces.commands.dataset import change_dataset
from workspaces.models import Approval, Dataset
from workspaces.verbs import Verb


def make_candidate(
    laboratory: Laboratory, *, value: float = 0.8, error: float | None = 0.01, content: bytes = b"weights", **values: Any
) -> Artifact:
    """A run with one model and one score, as a new one each time. The laboratory's scope must be open."""
    change_licence(laboratory, "CC-BY-4.0")
    pattern = Run.objects.order_by("number").first() or launch(laboratory)
    frozen = pattern.frozen | {"pool": pattern.frozen["pool"] | {"isolation": "user"}}
    (run,) = copy_runs(actor=laboratory.owner, pattern=pattern, count=1, **{"frozen": frozen, **values})
    _copy_inputs(actor=laboratory.owner, pattern=pattern, run=run)
    score_runs(actor=laboratory.owner, scores={run: (value, error)})
    return add_artifact(actor=laboratory.owner, run=run, path="model.pt", content=content, kind="model")


@command(Verb.LAUNCH_ADMITTED, needs=Permission.LAUNCH_RUN, kind=Kind.RUN)
def _copy_inputs(event: Draft, /, *, actor: Actor, pattern: Run, run: Run) -> None:
    for entry in pattern.inputs.all():
        event.created(
            RunInput.objects.create(
                run=run, slug=entry.slug, kind=entry.kind, dataset_version_id=entry.dataset_version_id, sha256=entry.sha256
            )
        )


def change_licence(laboratory: Laboratory, licence: str) -> None:
    dataset = Dataset.objects.get(slug="table")
    if dataset.licence != licence:
        change_dataset(actor=laboratory.owner, dataset=dataset, licence=licence)


def propose(actor: Actor, artifact: Artifact, name: str = "champion", **asked: Any) -> tuple[Promotion, Approval]:
    promotion = propose_promotion(actor=actor, artifact=artifact, name=name, **asked)
    return promotion, Approval.objects.get(subject_type="promotion", subject_id=promotion.pk)


def score_of(artifact: Artifact) -> Evaluation:
    return Evaluation.objects.get(run=artifact.run_id)
