"""Scores with what a page shows beside them, fetched once it is known which ones stand on the page."""

from collections.abc import Iterable
from typing import Any

from django.db.models import F, QuerySet

from runs.models import Evaluation
from workspaces import kept_query

RELATED = ("run__agent", "run__agent_version", "contract", "subject_artifact__run__agent", "subject_artifact__run__agent_version")
_OF_RUN = ("name", "kind", "status", "agent__slug", "agent__name", "agent_version__number")
_OWN = tuple(field.attname for field in Evaluation._meta.concrete_fields)
# A run's frozen facts and parameters are most of what its row weighs; a board shows of them how the run was isolated.
_SHOWN = (
    *(f"contract__{name}" for name in ("version", "metric", "unit", "direction", "metrics", "counts_all_samples")),
    "subject_artifact__run_id",
    *(f"{run}__{name}" for run in ("run", "subject_artifact__run") for name in _OF_RUN),
)


def with_related(rows: Iterable[Evaluation]) -> list[Evaluation]:
    """The rows with runs, agents and contract, in two statements: a rank wants every score of the board, and PostgreSQL would carry all that is
    joined through its sort (100,000 scores: nine seconds). Each has `isolation`, of its run; ranks and what else was computed of it stay."""
    found = list(rows)
    whole = {row.pk: row for row in kept_query.ask(_shown, keys=[row.pk for row in found])} if found else {}
    for row in found:
        vars(whole[row.pk]).update((name, value) for name, value in vars(row).items() if name not in _OWN and not name.startswith("_"))
    return [whole[row.pk] for row in found]


def _shown(keys: Any) -> "QuerySet[Evaluation]":
    rows = Evaluation.objects.filter(pk=keys).select_related(*RELATED).only(*_OWN, *_SHOWN)
    return rows.annotate(isolation=F("run__frozen__pool__isolation"))
