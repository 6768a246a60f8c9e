"""Scores that may be gone by: those that rest on nothing withdrawn, and were asked for to compare runs, not to watch over a benchmark."""

import uuid

from django.db.models import Exists, OuterRef, QuerySet

from runs.models import CheckResult, Evaluation
from workspaces.models import WithdrawnObject


def standing() -> "QuerySet[Evaluation]":
    """What boards, home and orders by score read; an evaluation itself, its history, and a run's own page, stay readable whatever is withdrawn.
    What a contract check has measured is the reference once more: it would stand as a tie of it, or rank by how the benchmark has moved."""
    marks = WithdrawnObject.objects.filter(kind="evaluation", object_id=OuterRef("pk"), withdrawal__undone_at=None)
    checks = CheckResult.objects.filter(run=OuterRef("run"))
    # Not `NOT IN`: beyond the keys that fit into its working memory PostgreSQL goes through all of them for each row.
    return Evaluation.objects.filter(~Exists(marks), ~Exists(checks))


def check_runs() -> "QuerySet[CheckResult, uuid.UUID]":
    """Keys of the runs that contract checks have launched; for `exclude(…__in=…)` and its like."""
    return CheckResult.objects.filter(run__isnull=False).values_list("run_id", flat=True)
