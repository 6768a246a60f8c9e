"""Datasets and their frozen versions. The bytes are in the store before the command begins (commands/blob.py: receive_file)."""

import uuid
from collections.abc import Sequence
from typing import Any

from workspaces.access import Actor, Kind, Permission
from workspaces.audit import Draft, Refusal, command
from workspaces.commands.blob import StoredFile
from workspaces.commands.freezing import Said, freeze, licence_of, refuse_class
from workspaces.commands.registry import change_fields, create_named
from workspaces.models import Dataset, DatasetVersion
from workspaces.verbs import Verb

CHANGEABLE = frozenset({"name", "description", "licence"})
ORIGIN = frozenset({"origin", "licence", "evidence"})


@command(Verb.DATASET_CREATED, needs=Permission.EDIT_REGISTRY, kind=Kind.DATASET)
def create_dataset(
    event: Draft,
    *,
    actor: Actor,
    slug: str,
    name: str = "",
    description: str = "",
    origin: str = Dataset.Origin.PRIVATE,
    evidence: str = "",
    licence: str = "",
    id: uuid.UUID | None = None,  # noqa: A002  # the word of the column
) -> Dataset:
    """Create a dataset without a version yet. What its origin demands to be said is asked for when the first version comes."""
    return create_named(
        event, Dataset, actor=actor, slug=slug, name=name, id=id, description=description, origin=origin, evidence=evidence.strip(),
        licence=licence_of(licence),
    )  # fmt: skip


@command(Verb.DATASET_CHANGED, needs=Permission.EDIT_REGISTRY, kind=Kind.DATASET)
def change_dataset(event: Draft, /, *, actor: Actor, dataset: Dataset, reason: str = "", **changed: Any) -> Dataset:
    """Change name, description or licence; what is in it changes only by a new version, what it is only by `set_origin`."""
    event.reason = reason
    if changed.get("licence", dataset.licence) != dataset.licence:
        changed["licence"] = licence_of(str(changed["licence"]))
    return change_fields(event, dataset, CHANGEABLE, changed)


@command(Verb.DATASET_ORIGIN_SET, needs=Permission.EDIT_REGISTRY, kind=Kind.DATASET)
def set_origin(event: Draft, *, actor: Actor, dataset: Dataset, origin: str, licence: str, evidence: str, reason: str) -> Dataset:
    """Say which class a dataset is of, what shows it, and its licence. Versions keep what was said as they were frozen; versions to come take
    this. Refuses a change without reason, and one that leaves out what the class demands of every version."""
    if not reason.strip():
        raise Refusal("Say why; whoever relies on the class will read it.", field="reason")
    changed = {"origin": origin, "licence": licence_of(licence), "evidence": evidence.strip()}
    event.reason = reason.strip()[:1000]
    return change_fields(event, dataset, ORIGIN, changed, check=_refuse_class)


@command(Verb.DATASET_VERSION_IMPORTED, needs=Permission.IMPORT_DATA, kind=Kind.DATASET)
def import_dataset_version(
    event: Draft,
    *,
    actor: Actor,
    dataset: Dataset,
    role: str,
    files: Sequence[StoredFile],
    source: str = "",
    licence: str = "",
    evidence: str = "",
    records: int | None = None,
    reason: str = "",
    id: uuid.UUID | None = None,  # noqa: A002  # the word of the column
) -> DatasetVersion:
    """Freeze stored files as the next version. `records` is a person's count; without it, what could be counted while the files came."""
    event.reason = reason
    said = Said(role=role, source=source, licence=licence, evidence=evidence, records=records)
    return freeze(event, dataset=dataset, files=files, said=said, by=actor.user or dataset.created_by, pk=id)


def _refuse_class(dataset: Dataset) -> None:
    refuse_class(dataset.origin, licence=dataset.licence, evidence=dataset.evidence)
