"""What names stored files: every model of either floor that has a key to one, found by the keys themselves, so that none that comes later is
forgotten by whoever lets go of files."""

from typing import Any, cast

from django.db.models import Exists, Model, OuterRef, Q, QuerySet

from workspaces.models import Blob


def named() -> Q:
    """A condition on blobs: something names it. A row whose own file was removed for good names it no longer."""
    found = Q()
    for model, key in _keys():
        rows = cast(Any, model).objects.filter(**{key: OuterRef("pk")})
        is_removed = any(field.name == "removed_at" for field in model._meta.concrete_fields)
        found |= Q(Exists(rows.filter(removed_at=None) if is_removed else rows))
    return found


def is_named(blob: Blob) -> bool:
    return Blob.objects.filter(named(), pk=blob.pk).exists()


def unnamed() -> "QuerySet[Blob]":
    """Files that are counted, and that nothing names any more."""
    return Blob.objects.filter(removed_at=None).exclude(named()).order_by("pk")


def _keys() -> list[tuple[type[Model], str]]:
    """Models with a key to a stored file, and the key's name. No key has a way back, so that they are hidden."""
    relations = (field for field in Blob._meta.get_fields(include_hidden=True) if field.one_to_many or field.one_to_one)
    return [(cast(Any, relation).related_model, cast(Any, relation).field.name) for relation in relations if relation.auto_created]
