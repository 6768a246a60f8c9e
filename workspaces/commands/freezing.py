"""Freezing stored files as the next version of a dataset: part of every command that brings one, with what is said of where it is from."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from workspaces import manifest
from workspaces.audit import Draft, Refusal
from workspaces.commands.blob import StoredFile, keep_blobs
from workspaces.commands.registry import insert, insert_all
from workspaces.file_paths import BadPath, refuse_collisions, shown_path
from workspaces.licences import NOT_KNOWN, BadLicence, expression_of
from workspaces.models import Dataset, DatasetFile, DatasetVersion, User
from workspaces.verbs import Verb

MAX_FILES = 1000
Origin = Dataset.Origin


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What whoever brings a version says of it. Licence and evidence that are left out are the dataset's; `records` is a person's count, and
    without it what could be counted while the files came."""

    role: str
    source: str = ""
    licence: str = ""
    evidence: str = ""
    records: int | None = None
    source_artifact_id: uuid.UUID | None = None


def freeze(
    event: Draft, *, dataset: Dataset, files: Sequence[StoredFile], said: Said, by: User, pk: uuid.UUID | None = None
) -> DatasetVersion:
    """Refuses what the newest version holds already, files that are no version, and a version without what its origin demands to be said."""
    _refuse_files(files)
    if not said.records:
        _refuse_without_records(files)
    dataset = Dataset.objects.select_for_update(no_key=True).get(pk=dataset.pk)  # one next version at a time
    newest = dataset.versions.order_by("-number").first()
    if newest is not None and newest.role == said.role and newest.content_hash == manifest.hash_of(files, newest.hash_form):
        raise Refusal(
            f"This is what version {newest.number} of {dataset.name} holds already, as {newest.get_role_display()}; nothing was imported."
        )
    licence = licence_of(said.licence) or dataset.licence
    evidence = said.evidence.strip() or dataset.evidence
    source = said.source.strip()
    refuse_unsaid(dataset.origin, licence=licence, evidence=evidence, source=source, is_made_here=said.source_artifact_id is not None)
    counted = [file.records for file in files if file.records is not None]
    version = DatasetVersion(
        dataset=dataset,
        number=newest.number + 1 if newest else 1,
        role=said.role,
        content_hash=manifest.hash_of(files, manifest.TREE),
        hash_form=manifest.TREE,
        bytes=sum(file.bytes for file in files),
        records=said.records if said.records is not None else sum(counted) if counted else None,
        source=source,
        origin=dataset.origin,
        licence=licence,
        evidence=evidence,
        created_by=by,
        source_artifact_id=said.source_artifact_id,
    )
    if pk is not None:
        version.pk = pk
    insert(event, version)
    blobs = keep_blobs(event, files)
    insert_all(event, [DatasetFile(version=version, path=file.path, blob=blobs[file.sha256]) for file in files])
    event.details["version"] = {
        "number": version.number,
        "role": said.role,
        "content_hash": version.content_hash,
        "files": len(files),
        "bytes": version.bytes,
        "licence": licence,
        "source": source,
    }
    if event.verb != Verb.DATASET_VERSION_IMPORTED:
        event.about = version
    return version


def licence_of(text: str) -> str:
    """A licence as it is stored. Refuses what is no SPDX expression."""
    try:
        return expression_of(text)
    except BadLicence as error:
        raise Refusal(str(error), field="licence") from error


def refuse_unsaid(origin: str, *, licence: str, evidence: str, source: str, is_made_here: bool) -> None:
    """Refuse a version of which is not said what its origin class demands. What nobody knows is said as such: “not known”."""
    label = Origin(origin).label
    if origin == Origin.EXTERNAL and not source and not is_made_here:
        raise Refusal(f"What is {label} names its source: an address, a paper, a person, or “not known”.", field="source")
    refuse_class(origin, licence=licence, evidence=evidence)
    if origin == Origin.SELF_PLAY and not evidence and not is_made_here:
        raise Refusal(
            f"What is {label} comes from a run: import the run's artifact, let runs add to the dataset, or say what shows it.",
            field="evidence",
        )


def refuse_class(origin: str, *, licence: str, evidence: str) -> None:
    """Refuse an origin class without what it demands of the dataset and of every version alike."""
    label = Origin(origin).label
    if origin == Origin.EXTERNAL and not licence:
        raise Refusal(f"What is {label} names its licence: an SPDX expression such as CC-BY-4.0, or “not known”.", field="licence")
    if origin == Origin.REUSABLE and licence in ("", NOT_KNOWN):
        raise Refusal(f"What is {label} has a known licence; name it, or choose another origin.", field="licence")
    if origin == Origin.REUSABLE and not evidence:
        raise Refusal(f"Say what shows that it is {label}: who looked at it, and where that is written down.", field="evidence")


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


def _refuse_without_records(files: Sequence[StoredFile]) -> None:
    """Refuse where all files were counted and none holds a record; what cannot be counted may hold some."""
    if any(file.records != 0 for file in files):
        return
    what = f"{shown_path(files[0].path)} holds" if len(files) == 1 else f"These {len(files):,} files hold"
    raise Refusal(
        f"{what} no record: blank lines, or a row of column names alone. Send what has records; where the first line of a table is one, "
        "say that it names no columns.",
        field="files",
    )
