"""Datasets and their frozen versions. The bytes are in the store before the command begins (commands/blob.py: receive_file)."""

import uuid
from collections.abc import Sequence
from typing import Any

from workspaces.access import Actor, Kind, Permission
from workspaces.audit import Draft, Refusal, command, digest
from workspaces.commands.blob import StoredFile, keep_blobs
from workspaces.commands.registry import change_fields, create_named, insert, insert_all
from workspaces.file_paths import BadPath, refuse_collisions, shown_path
from workspaces.models import Dataset, DatasetFile, DatasetVersion
from workspaces.verbs import Verb

CHANGEABLE = frozenset({"name", "description", "origin", "licence"})
MAX_FILES = 1000


@command(Verb.DATASET_CREATED, needs=Permission.EDIT_REGISTRY, kind=Kind.DATASET)
def create_dataset(
    event: Draft,
    *,
    actor: Actor,
    slug: str,
    name: str = "",
    description: str = "",
    origin: str = Dataset.Origin.PRIVATE,
    licence: str = "",
    id: uuid.UUID | None = None,  # noqa: A002  # the word of the column
) -> Dataset:
    """Create a dataset without a version yet."""
    return create_named(event, Dataset, actor=actor, slug=slug, name=name, id=id, description=description, origin=origin, licence=licence)


@command(Verb.DATASET_CHANGED, needs=Permission.EDIT_REGISTRY, kind=Kind.DATASET)
def change_dataset(event: Draft, /, *, actor: Actor, dataset: Dataset, reason: str = "", **changed: Any) -> Dataset:
    """Change name, description, origin or licence; what is in it changes only by a new version."""
    event.reason = reason
    return change_fields(event, dataset, CHANGEABLE, changed)


@command(Verb.DATASET_VERSION_IMPORTED, needs=Permission.IMPORT_DATA, kind=Kind.DATASET)
def import_dataset_version(
    event: Draft,
    *,
    actor: Actor,
    dataset: Dataset,
    role: str,
    files: Sequence[StoredFile],
    source: str = "",
    records: int | None = None,
    made_by_run_id: uuid.UUID | None = None,
    reason: str = "",
    id: uuid.UUID | None = None,  # noqa: A002  # the word of the column
) -> DatasetVersion:
    """Freeze stored files as the next version. `records` is a person's count; without it, what could be counted while the files came."""
    event.reason = reason
    _refuse_files(files)
    dataset = Dataset.objects.select_for_update(no_key=True).get(pk=dataset.pk)  # one next version at a time
    content_hash = manifest_hash(files)
    newest = dataset.versions.order_by("-number").first()
    if newest is not None and newest.content_hash == content_hash and newest.role == role:
        raise Refusal(
            f"This is what version {newest.number} of {dataset.name} holds already, as {newest.get_role_display()}; nothing was imported."
        )
    if records is None:
        counted = [file.records for file in files if file.records is not None]
        records = sum(counted) if counted else None
    version = DatasetVersion(
        dataset=dataset,
        number=newest.number + 1 if newest else 1,
        role=role,
        content_hash=content_hash,
        bytes=sum(file.bytes for file in files),
        records=records,
        source=source,
        created_by=actor.user or dataset.created_by,
        made_by_run_id=made_by_run_id,
    )
    if id is not None:
        version.pk = id
    insert(event, version)
    blobs = keep_blobs(event, files)
    insert_all(event, [DatasetFile(version=version, path=file.path, blob=blobs[file.sha256]) for file in files])
    event.details["version"] = {
        "number": version.number,
        "role": role,
        "content_hash": content_hash,
        "files": len(files),
        "bytes": version.bytes,
    }
    return version


def manifest_hash(files: Sequence[StoredFile]) -> str:
    """SHA-256 of the canonical manifest: path, SHA-256 and bytes of every file, by path."""
    return digest(sorted([file.path, file.sha256, file.bytes] for file in files))


def _refuse_files(files: Sequence[StoredFile]) -> None:
    if not files:
        raise Refusal("A version holds at least one file; choose one.", field="files")
    if len(files) > MAX_FILES:
        raise Refusal(f"A version may have {MAX_FILES:,} files; these are {len(files):,}. Pack them into fewer.", field="files")
    empty = next((file for file in files if file.bytes == 0), None)
    if empty is not None:
        raise Refusal(
            f"{shown_path(empty.path)} is empty: there is nothing in it to train or measure on. Send a file with content.", field="files"
        )
    try:
        refuse_collisions(file.path for file in files)
    except BadPath as error:
        raise Refusal(str(error), field="files") from error
