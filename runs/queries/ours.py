"""Attempts that this installation has started: the only ones that it may touch (contracts.md E).

A copy of the database that lives beside the old one has another epoch, and while nobody has said what a copy is, none is its own.
"""

from typing import Any

from django.db.models import Exists, OuterRef, QuerySet, Subquery
from django.db.models.functions import Substr

from runs.pools.scheduler import PREFIX
from workspaces import kept_query
from workspaces.models import Installation
from workspaces.models.installation import ThisDatabase

NOT_OURS = "it was started by the installation that this database was copied from, which alone may touch it"
EPOCH_LENGTH = Installation._meta.get_field("epoch").max_length


def ours(key: str = "key") -> Exists:
    """Of rows that lead to an attempt's `key` those whose attempt is ours, for a filter."""
    return Exists(_here().filter(epoch=Substr(OuterRef(key), len(PREFIX) + 1, EPOCH_LENGTH)))


def is_ours(key: str) -> bool:
    return any(is_of(epoch, key) for (epoch,) in kept_query.ask(_epoch))


def is_of(epoch: str | None, key: str) -> bool:
    """Whether a key is of an attempt of this epoch; of none where there is no epoch."""
    return epoch is not None and key.startswith(key_of(epoch, ""))


def key_of(epoch: str, attempt: str) -> str:
    """An attempt's key, which is its name outside; `attempt`: the hex digits of its id."""
    return f"{PREFIX}{epoch}-{attempt}"


def own_epoch() -> Subquery:
    """For a statement that asks for more: NULL where this database is a copy of which nobody has said what it is."""
    return Subquery(_here().values("epoch")[:1])


def _epoch() -> "QuerySet[Any, Any]":
    return _here().values_list("epoch")


def _here() -> "QuerySet[Installation]":
    return Installation.objects.filter(is_current=True, database=ThisDatabase())
