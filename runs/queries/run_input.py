"""What a run reads, in the order in which it was asked for: the order is part of the request, and of its hash."""

from typing import TYPE_CHECKING, Any

from runs.models import RunInput

if TYPE_CHECKING:
    from django.db.models import QuerySet


def inputs_of(run: Any, *related: str) -> "QuerySet[RunInput]":
    """Rows of a run, or of its key, with `related` at hand. A list of them that came in another order would ask for something else."""
    return RunInput.objects.filter(run=run).select_related(*related).order_by("created_at", "pk")
