"""An artifact that may be promoted: made by a run that was kept apart, of data with a known licence, and measured."""

from typing import Any

from runs.commands.promotion import propose_promotion
from runs.eligibility import Fact
from runs.jobs.overlap import compare_pairs, read_version
from runs.models import Artifact, Decision, Evaluation, Promotion, Run, RunInput, UndeclaredInput
from runs.queries.overlap import next_to_read, pairs_to_compare
from tests.factories_pages import add_artifact, copy_runs, score_runs
from tests.factories_runs import Laboratory, launch
from workspaces.access import Actor, Kind, Permission
from workspaces.audit import Draft, command
from workspaces.commands import approval as requests
from workspaces.commands.dataset import change_dataset
from workspaces.models import Approval, Dataset, DatasetVersion
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
    made = add_artifact(actor=laboratory.owner, run=run, path="model.pt", content=content, kind="model")
    check_overlaps()
    return made


@command(Verb.LAUNCH_ADMITTED, needs=Permission.LAUNCH_RUN, kind=Kind.RUN)
def _copy_inputs(event: Draft, /, *, actor: Actor, pattern: Run, run: Run) -> None:
    for entry in pattern.inputs.all():
        event.created(
            RunInput.objects.create(
                run=run, slug=entry.slug, kind=entry.kind, dataset_version_id=entry.dataset_version_id, sha256=entry.sha256
            )
        )


@command(Verb.LAUNCH_ADMITTED, needs=Permission.LAUNCH_RUN, kind=Kind.RUN)
def add_input(
    event: Draft, /, *, actor: Actor, run: Run, version: DatasetVersion | None = None, artifact: Artifact | None = None, slug: str = "model"
) -> None:
    """Something more that the run has read and named."""
    values: dict[str, Any] = (
        {"slug": "more-data", "kind": "dataset", "dataset_version": version, "sha256": "0" * 64}
        if version is not None
        else {"slug": slug, "kind": "artifact", "artifact": artifact, "sha256": artifact.blob.sha256 if artifact else ""}
    )
    event.created(RunInput.objects.create(run=run, **values))


@command(Verb.RUN_ENDED, needs=Permission.LAUNCH_RUN, kind=Kind.RUN)
def add_unsaid(event: Draft, /, *, actor: Actor, run: Run, what: str) -> None:
    """Something that the run has read and did not name."""
    event.created(UndeclaredInput.objects.create(run=run, kind=UndeclaredInput.Kind.INPUT, what=what))


@command(Verb.DATASET_CHANGED, needs=Permission.EDIT_REGISTRY, kind=Kind.DATASET)
def write_licence(event: Draft, /, *, actor: Actor, dataset: Dataset, licence: str) -> None:
    """As it could be written before licences were checked."""
    event.change(dataset, licence=licence)


def judge(laboratory: Laboratory, artifact: Artifact, value: float) -> Run:
    """A run that has measured the artifact."""
    pattern = make_candidate(laboratory, content=str(value).encode()).run
    run = copy_runs(actor=laboratory.owner, pattern=pattern, count=1, kind="evaluate", statuses=("succeeded",))[0]
    score_runs(actor=laboratory.owner, scores={run: (value, 0.01)}, subject_artifact=artifact)
    return run


def change_licence(laboratory: Laboratory, licence: str) -> None:
    dataset = Dataset.objects.get(slug="table")
    if dataset.licence != licence:
        change_dataset(actor=laboratory.owner, dataset=dataset, licence=licence)


def check_overlaps() -> None:
    """Everything here is read and held against every holdout, as the job does it bell by bell. A scope must be open."""
    actor = Actor.system(job_id="test")
    while (version := next_to_read()) is not None:
        read_version(actor, version)
    while pairs := pairs_to_compare(10):
        compare_pairs(actor, pairs)


@command(Verb.PROMOTION_PROPOSED, needs=Permission.PROMOTE, kind=Kind.ARTIFACT)
def add_promotion(event: Draft, /, *, actor: Actor, artifact: Artifact, name: str, reason: str, facts: list[Fact]) -> Promotion:
    """One that was put forward and withdrawn, with these facts, whatever the checks would say."""
    assert actor.user
    promotion = Promotion.objects.create(
        number=Promotion.objects.count() + 1, name=name, artifact=artifact, status=Promotion.Status.WITHDRAWN, reason=reason, requested_by=actor.user,
        facts=[fact.stored for fact in facts], content_hash="0" * 64, end_reason=reason,
    )  # fmt: skip
    event.created(promotion)
    return promotion


@command(Verb.APPROVAL_VOIDED, needs=Permission.PROMOTE, kind=Kind.ARTIFACT)
def add_gate(event: Draft, /, *, actor: Actor, promotion: Promotion, decision: Decision, gate: list[Fact]) -> None:
    """The request about it, void by now, with the gate of the policy that put it forward."""
    assert actor.user
    content = {"asks": promotion.label, "facts": promotion.facts, "decision": decision.pk.hex, "put_forward_by": decision.label}
    asked = requests.ask(
        event, subject_type="promotion", subject_id=promotion.pk, subject_label=promotion.label, reason=promotion.reason, requested_by=actor.user,
        content=content | {"gate": [fact.agreed for fact in gate]},
    )  # fmt: skip
    requests.void(event, subject_type="promotion", subject_id=promotion.pk)
    event.about = asked


def propose(actor: Actor, artifact: Artifact, name: str = "champion", **asked: Any) -> tuple[Promotion, Approval]:
    promotion = propose_promotion(actor=actor, artifact=artifact, name=name, **asked)
    return promotion, Approval.objects.get(subject_type="promotion", subject_id=promotion.pk)


def score_of(artifact: Artifact) -> Evaluation:
    return Evaluation.objects.get(run=artifact.run_id)
