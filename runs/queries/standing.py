"""Scores that may be gone by: those that rest on nothing withdrawn, and were asked for to compare runs, not to watch over a benchmark."""

import uuid
from collections.abc import Sequence
from typing import Any

from django.db.models import Count, Exists, OuterRef, QuerySet

from runs.models import CheckResult, Evaluation
from workspaces import kept_query
from workspaces.models import WithdrawnObject
from workspaces.queries.withdrawal import marked


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


def how_many(**of: Any) -> list[kept_query.Question]:
    """What `counts_among` reads: PostgreSQL counts all by the index alone, and what does not stand from the few that there are of it; to count what
    `standing` finds it would look at each row."""
    return [kept_query.Question(build, (), of) for build in (_all, _withdrawn, _of_checks)]


def counts_among(answers: Sequence[Sequence[tuple[Any, int]]]) -> tuple[int, int]:
    """How many evaluations stand, and how many are withdrawn."""
    every, withdrawn, of_checks = (sum(count for _, count in rows) for rows in answers)
    return every - withdrawn - of_checks, withdrawn


def counted(rows: "QuerySet[Evaluation]") -> "QuerySet[Any, Any]":
    """(contract, count)"""
    return rows.order_by().values_list("contract").annotate(rows=Count("*"))


def _all(**of: Any) -> "QuerySet[Any, Any]":
    return counted(Evaluation.objects.filter(**of))


def _withdrawn(**of: Any) -> "QuerySet[Any, Any]":
    return counted(Evaluation.objects.filter(**of, pk__in=marked("evaluation")))


def _of_checks(**of: Any) -> "QuerySet[Any, Any]":
    return counted(Evaluation.objects.filter(**of, run__in=check_runs()).exclude(pk__in=marked("evaluation")))
