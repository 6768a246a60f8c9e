"""Scores that may be gone by: those that rest on nothing withdrawn, and were asked for to compare runs, not to watch over a benchmark."""

import uuid

from django.db.models import QuerySet

from runs.models import CheckResult, Evaluation
from workspaces.queries.withdrawal import marked


def standing() -> "QuerySet[Evaluation]":
    """What boards, home and orders by score read; an evaluation itself, its history, and a run's own page, stay readable whatever is withdrawn.
    What a contract check has measured is the reference once more: it would stand as a tie of it, or rank by how the benchmark has moved."""
    return Evaluation.objects.exclude(pk__in=marked("evaluation")).exclude(run__in=check_runs())


def check_runs() -> "QuerySet[CheckResult, uuid.UUID]":
    """Keys of the runs that contract checks have launched; for `exclude(…__in=…)` and its like."""
    return CheckResult.objects.filter(run__isnull=False).values_list("run_id", flat=True)
