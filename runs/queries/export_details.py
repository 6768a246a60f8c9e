"""Which details of events stay: the record is a table like others, so what no other table may say leaves in none of its details either.

They are withheld whole, since the chain holds the hash of the whole. Labels of the record are part of its hashes and always leave: none may be in
words of a run (`label` of a model).
"""

import uuid
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from django.db.models import BooleanField, Exists, F, Func, OuterRef, Q, QuerySet, Value

from runs.models import Failure
from workspaces.models import EventSubject

BESIDES = ("email", "secret.fingerprint")  # what details say of invitations and new secrets, beside what they note as changed


def tells_what_stays(without: Mapping[str, Iterable[str]]) -> Func:
    """Do the details of a payload hold a column that stays, by `{model: columns}`, or an address?"""
    changed = sorted({f"changed.*.{column.removesuffix('_id')}" for columns in without.values() for column in columns})
    path = f"$.details ? ({' || '.join(f'exists(@.{name})' for name in (*BESIDES, *changed))})"
    return Func(
        F("body"),
        Value(path),
        function="jsonb_path_exists",
        template="%(function)s(%(expressions)s::jsonpath)",
        output_field=BooleanField(),
    )


def tells_of(closed_runs: Collection[uuid.UUID]) -> Q:
    """Is a payload of an event that changed one of these runs, or the group of its failure? That of its launch says what was asked, and leaves."""
    named = Q(object_id__in=closed_runs) | Q(object_id__in=groups_of(closed_runs))
    return ~Q(event__verb__startswith="launch.") & Q(Exists(EventSubject.objects.filter(named, event=OuterRef("event"))))


def groups_of(closed_runs: Collection[uuid.UUID]) -> "QuerySet[Failure, Any]":
    """Keys of the groups in which these runs have failed: a group has its title from one of them."""
    return Failure.objects.filter(run__in=closed_runs).values("group")
