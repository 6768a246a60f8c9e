"""A data set that a Croissant describes: the dataset is made, and its files are asked for."""

import uuid
from typing import Any

from runs.commands.dataset_import import WantedFile, ask
from runs.models import DatasetImport
from workspaces import ids, scope
from workspaces.access import Actor, Kind, Permission, rights_of
from workspaces.audit import Denied, Draft, Refusal, command
from workspaces.commands.registry import create_named
from workspaces.croissant import BadCroissant, read_document
from workspaces.licences import NOT_KNOWN
from workspaces.models import Dataset
from workspaces.verbs import Verb


@command(Verb.DATASET_IMPORT_ASKED, needs=Permission.IMPORT_DATA, kind=Kind.DATASET)
def import_croissant(
    event: Draft,
    *,
    actor: Actor,
    document: dict[str, Any],
    slug: str,
    role: str,
    reason: str = "",
    id: uuid.UUID | None = None,  # noqa: A002  # the word of the column
) -> DatasetImport:
    """Make a dataset of external origin with what the file says, and ask for its files, whose SHA-256 must be the one that it names. A licence that
    it does not name is not known. Refuses a description that labsite cannot hold to its word."""
    if not rights_of(actor, scope.current_id()).allows(Permission.EDIT_REGISTRY, Kind.DATASET):
        raise Denied(Permission.EDIT_REGISTRY, Kind.DATASET)
    try:
        described = read_document(document)
    except BadCroissant as error:
        raise Refusal(f"This Croissant is not taken: {error}", field="document") from error
    about = [described.cite_as, described.url, f"version {described.version}" if described.version else "", described.creator]
    evidence = f"Its Croissant: {' · '.join(text for text in about if text) or described.name}"[:2000]
    dataset = create_named(
        event, Dataset, actor=actor, slug=slug, name=described.name[:200], id=None, description=described.description[:20_000],
        origin=Dataset.Origin.EXTERNAL, licence=described.licence[:200] or NOT_KNOWN, evidence=evidence,
    )  # fmt: skip
    asked = DatasetImport(
        id=id or ids.uuid7(), dataset=dataset, role=role, evidence="", licence="", reason=reason.strip()[:1000],
    )  # fmt: skip
    files = [WantedFile(file.address, file.path, file.sha256, file.bytes) for file in described.files]
    return ask(event, asked, files, actor=actor)
