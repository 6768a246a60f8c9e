"""What the workspace tries to improve, now and before."""

from django.db.models import QuerySet

from workspaces import kept_query
from workspaces.models import Objective


def current_objective() -> Objective | None:
    return next(iter(kept_query.ask(_current)), None)


def _current() -> "QuerySet[Objective]":
    return Objective.objects.select_related("benchmark").filter(is_current=True)


def earlier_objectives() -> "QuerySet[Objective]":
    """Objectives that were followed by another, newest first."""
    return Objective.objects.select_related("benchmark").filter(is_current=False).order_by("-created_at", "-pk")
