"""Scores that may be gone by: those that rest on nothing withdrawn."""

from django.db.models import QuerySet

from runs.models import Evaluation
from workspaces.queries.withdrawal import marked


def standing() -> "QuerySet[Evaluation]":
    """What boards, home and orders by score read; an evaluation itself, and a run's own page, stay readable whatever is withdrawn."""
    return Evaluation.objects.exclude(pk__in=marked("evaluation"))
