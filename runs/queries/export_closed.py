"""What an export withholds for the sake of restricted datasets: whole rows, and columns that are emptied in rows that stay.

A rule test holds these lists against docs/inventory.csv, which says of every column of text whether it may hold words of a run or names of a
dataset's files, so that a new column is decided on before it can leave.
"""

import uuid
from collections.abc import Callable

from django.apps import apps
from django.db.models import Exists, OuterRef, Q

from runs.models import Failure, Promotion
from runs.queries.closed_words import RESTRICTED, Closed
from workspaces.models import Dataset, EventSubject
from workspaces.models.base import Owned
from workspaces.verbs import Verb

Which = Callable[[Closed], Q]
NAMES_A_FILE = r"/datasets/[^/]+/versions/[^/]+/(files|proofs)/"  # the address of a page that somebody was denied


def _of_runs(way: str) -> Which:
    return lambda closed: Q(**{f"{way}__in": closed.runs})


def _of_restricted(way: str) -> Which:
    return lambda _: Q(**{f"{way}__egress": RESTRICTED})


def _groups(closed: Closed) -> Q:
    """Groups in which closed runs have failed: a group has its title from one of its runs."""
    return Q(pk__in=Failure.objects.filter(run__in=closed.runs).values("group"))


def _asked(closed: Closed) -> Q:
    """Questions of policies that knew such words, and requests to promote what a closed run made."""
    made = Promotion.objects.filter(artifact__run__in=closed.runs).values("pk")
    return Q(subject_type="question", subject_id__in=closed.decisions) | Q(subject_type="promotion", subject_id__in=made)


def _told(closed: Closed) -> Q:
    """Details of events about what is closed by these lists, or that changed it: they note the same words. Those of a run's launch say what was
    asked, and leave."""
    keys = _keys(closed)
    changed = EventSubject.objects.filter(object_id__in=keys, event=OuterRef("event"))
    told = ~Q(event__verb__startswith="launch.") & (Q(event__subject_id__in=keys) | Q(Exists(changed)))
    if Dataset.objects.filter(egress=RESTRICTED).exists():
        told |= Q(event__verb=Verb.ACCESS_DENIED, body__details__where__regex=NAMES_A_FILE)
    return told


def _keys(closed: Closed) -> set[uuid.UUID]:
    ways = {**CLOSED_ROWS, **{label: which for label, (which, _) in CLOSED_COLUMNS.items()}, **ONLY_TOLD}
    owned = {label: model for label in ways if issubclass(model := apps.get_model(label), Owned)}  # of others no event tells
    return {key for label, model in owned.items() for key in model.objects.filter(ways[label](closed)).values_list("pk", flat=True)}


CLOSED_ROWS: dict[str, Which] = {
    "runs.Failure": _of_runs("run"),
    "runs.FailureGroup": _groups,
    "runs.RunLine": _of_runs("attempt__run"),
    "runs.UndeclaredInput": _of_runs("run"),
    "workspaces.DatasetFile": _of_restricted("version__dataset"),
    "workspaces.DatasetPiece": _of_restricted("dataset"),
    "workspaces.EventPayload": _told,
}
CLOSED_COLUMNS: dict[str, tuple[Which, tuple[str, ...]]] = {
    "runs.Artifact": (_of_runs("run"), ("metadata",)),
    "runs.CheckResult": (_of_runs("run"), ("words",)),  # of one that gave no score, the last words of its run
    "runs.DatasetImport": (_of_restricted("dataset"), ("source", "failure", "found")),
    "runs.Decision": (
        lambda closed: Q(pk__in=closed.decisions),
        ("cause_label", "words", "facts", "checks", "candidates", "failure"),
    ),
    "runs.Evaluation": (_of_runs("run"), ("samples_read",)),
    "runs.MemoryEntry": (
        lambda closed: Q(pk__in=closed.entries),
        ("collection", "title", "text", "configuration", "review_comment", "withdrawn_reason"),
    ),
    "runs.Promotion": (_of_runs("artifact__run"), ("end_reason",)),  # which checks do not hold any more, with what they found
    "runs.Run": (_of_runs("pk"), ("reason",)),
    "workspaces.Approval": (_asked, ("content", "end_reason")),
    "workspaces.DatasetVersion": (_of_restricted("dataset"), ("source",)),
}
# What stays of every workspace, though events tell of it.
ONLY_TOLD: dict[str, Which] = {
    "runs.OverlapCheck": lambda _: Q(version__dataset__egress=RESTRICTED) | Q(holdout__dataset__egress=RESTRICTED),
    "runs.RecordIndex": _of_restricted("version__dataset"),
}
