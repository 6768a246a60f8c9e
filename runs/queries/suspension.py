"""Which artifacts nobody should rest on for now, although nothing was decided about their promotions: asked in one place, told by many.

A source answers, for keys of artifacts, which of them are suspended and why, in one query. A new one joins by its line in SOURCES.
"""

import uuid
from collections.abc import Callable, Collection

from runs.models import Artifact, Promotion
from runs.queries.lineage_edges import NodeKind
from workspaces.queries.withdrawal import standing_on

Source = Callable[[Collection[uuid.UUID]], dict[uuid.UUID, str]]


def suspended(artifact_ids: Collection[uuid.UUID]) -> dict[uuid.UUID, str]:
    """By artifact, a sentence why it is suspended; those that are not are left out."""
    found: dict[uuid.UUID, str] = {}
    for source in SOURCES if artifact_ids else ():
        found = source(artifact_ids) | found
    return found


def is_suspended(promotion: Promotion) -> bool:
    """Does it stand, and is it suspended?"""
    return promotion.status == Promotion.Status.PROMOTED and bool(suspended([promotion.artifact_id]))


def _files_missing(artifact_ids: Collection[uuid.UUID]) -> dict[uuid.UUID, str]:
    rows = Artifact.objects.filter(pk__in=artifact_ids, blob__missing_at__isnull=False).values_list("pk", "blob__missing_at")
    return {pk: f"Its file was not found whole in the store on {missing_at:%-d %B %Y}." for pk, missing_at in rows}


def _withdrawn(artifact_ids: Collection[uuid.UUID]) -> dict[uuid.UUID, str]:
    found = standing_on((NodeKind.ARTIFACT, key) for key in artifact_ids)
    return {key: f"{marks[0].subject_label}, which it rests on, is withdrawn: {marks[0].reason}" for (_, key), marks in found.items()}


SOURCES: tuple[Source, ...] = (_withdrawn, _files_missing)
