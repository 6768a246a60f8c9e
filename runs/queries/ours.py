"""Attempts that this installation has started: the only ones that it may touch (contracts.md E).

A copy of the database that lives beside the old one has another epoch, and while nobody has said what a copy is, none is its own.
"""

from typing import Any

from django.db.models import Exists, OuterRef, QuerySet
from django.db.models.functions import Substr

from runs.models import Attempt
from workspaces import kept_query
from workspaces.models import Installation
from workspaces.models.installation import ThisDatabase

NOT_OURS = "it was started by the installation that this database was copied from, which alone may touch it"
PREFIX = "lab-"
EPOCH_LENGTH = Installation._meta.get_field("epoch").max_length


def ours(key: str = "key") -> Exists:
    """Of rows that lead to an attempt's `key` those whose attempt is ours, for a filter."""
    return Exists(_here().filter(epoch=Substr(OuterRef(key), len(PREFIX) + 1, EPOCH_LENGTH)))


def is_ours(attempt: Attempt) -> bool:
    return any(attempt.key.startswith(f"{PREFIX}{epoch}-") for (epoch,) in kept_query.ask(_epoch))


def _epoch() -> "QuerySet[Any, Any]":
    return _here().values_list("epoch")


def _here() -> "QuerySet[Installation]":
    return Installation.objects.filter(is_current=True, database=ThisDatabase())
