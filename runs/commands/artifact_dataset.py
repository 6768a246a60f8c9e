"""An artifact of a run, frozen as the next version of a dataset."""

import uuid

from runs.models import Artifact
from runs.queries.egress import strictest_read_by
from runs.queries.held_out import HeldOut, held_out_content, left_by_evaluation
from runs.queries.lineage_edges import NodeKind
from runs.sample_results import tells_truth
from workspaces import scope, store
from workspaces.access import Actor, Kind, Permission, rights_of
from workspaces.accounts import lock_ledger
from workspaces.audit import Denied, Draft, Refusal, command
from workspaces.commands.blob import StoredFile
from workspaces.commands.egress import tighten
from workspaces.commands.freezing import Said, freeze
from workspaces.file_paths import BadPath, clean_path
from workspaces.models import Blob, Dataset, DatasetVersion, NotFound
from workspaces.queries.registry import stored_content
from workspaces.queries.withdrawal import withdrawals_on
from workspaces.records import counter_for, is_blank
from workspaces.verbs import Verb

COUNTED_BYTES = 65_536


@command(Verb.DATASET_VERSION_IMPORTED, needs=Permission.IMPORT_DATA, kind=Kind.DATASET)
def import_artifact(
    event: Draft,
    *,
    actor: Actor,
    dataset: Dataset,
    artifact: Artifact,
    role: str,
    path: str = "",
    licence: str = "",
    evidence: str = "",
    records: int | None = None,
    reason: str = "",
    id: uuid.UUID | None = None,  # noqa: A002  # the word of the column
) -> DatasetVersion:
    """Freeze an artifact as the next version; no byte is copied. `path`: what it is called there, by itself its own name. The version is derived
    from the artifact, and the dataset is closed as far as what its run has read. Refuses somebody who may not see artifacts, and an artifact
    that rests on something withdrawn."""
    if not rights_of(actor, scope.current_id()).allows(Permission.VIEW, Kind.ARTIFACT):
        raise Denied(Permission.VIEW, Kind.ARTIFACT)
    has_none = _no_records(path or artifact.path, artifact.blob)  # a look at the store, before anybody waits for us
    told = _told(artifact.blob)
    lock_ledger(event)  # a withdrawal that is under way comes before, or finds the version
    artifact = Artifact.objects.select_related("run", "blob").select_for_update(no_key=True, of=("self",)).get(pk=artifact.pk)
    if artifact.going:
        raise Refusal(f"{artifact.name or artifact.path} of {artifact.run.name} {artifact.going}.", field="artifact")
    gone = withdrawals_on(NodeKind.ARTIFACT, artifact.pk)
    if gone:
        raise Refusal(
            f"{artifact.name or artifact.path} of {artifact.run.name} rests on {gone[0].subject_label}, which was withdrawn: {gone[0].reason}",
            field="artifact",
        )
    held_out = held_out_content([artifact.blob_id]).get(artifact.blob_id) or told
    if held_out is not None and role != DatasetVersion.Role.HOLDOUT:
        raise Refusal(f"It {held_out.words}: freeze it as a holdout, so that nothing is trained on it.", field="role")
    try:
        name = clean_path(path or artifact.path.rpartition("/")[2])
    except BadPath as error:
        raise Refusal(str(error), field="path") from error
    event.reason = reason
    said = Said(
        role=role, source=f"{artifact.name[:400]} of {artifact.run.public_id}", licence=licence, evidence=evidence, records=records,
        source_artifact_id=artifact.pk,
    )  # fmt: skip
    file = StoredFile(name, artifact.blob.sha256, artifact.blob.bytes, has_none)
    version = freeze(event, dataset=dataset, files=[file], said=said, by=actor.user or dataset.created_by, pk=id)
    strictest = strictest_read_by(artifact.run_id)
    if tighten(event, [dataset.pk], strictest):
        event.details["closed"] = {"dataset": dataset.slug, "egress": strictest}
    event.details["artifact"] = artifact.public_id
    return version


def _no_records(name: str, blob: Blob) -> int | None:
    """0 for a short file of blank lines. Any other is not counted: its bytes came before anybody called it a table."""
    if blob.bytes > COUNTED_BYTES or counter_for(name, has_header=False) is None:
        return None
    try:
        return 0 if is_blank(name, b"".join(stored_content(blob))) else None
    except (NotFound, Refusal, store.StoreAway, store.StoreMissing, store.StoreDamaged):
        return None  # whoever uses it hears of that


def _told(blob: Blob) -> HeldOut | None:
    """Of what truth a file tells that an evaluation left, whether a score names it or not; what cannot be read is taken for it."""
    left = left_by_evaluation(blob.pk)
    if left is None:
        return None
    try:
        return left if tells_truth(stored_content(blob)) else None
    except (NotFound, store.StoreAway, store.StoreMissing, store.StoreDamaged):
        return left
