"""Scores of runs: what a run reported itself, or what an evaluation measured of an artifact that it made."""

import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db.models import F, Q, QuerySet

from runs.models import Run
from runs.queries.standing import standing
from workspaces import kept_query


@dataclass(frozen=True, slots=True)
class RunScore:
    """The newest value of the contract's metric; `by_run` is the run that measured it, the run itself or an evaluation."""

    value: float
    standard_error: float | None
    by_run: uuid.UUID


def scores_of(runs: Iterable[Run]) -> dict[uuid.UUID, RunScore]:
    """Score of each run on its own benchmark, under the contract version that it ran with; left out are runs without one, and those whose score
    rests on something withdrawn."""
    wanted = {run.pk: (run.benchmark_id, run.contract_id) for run in runs}
    found: dict[uuid.UUID, RunScore] = {}
    rows = kept_query.ask(_measured, runs=[*wanted]) if wanted else []
    for run_id, maker_id, benchmark_id, contract_id, value, error in rows:
        for key in (run_id, maker_id):
            if key in wanted and wanted[key] == (benchmark_id, contract_id):
                own = found.get(key)
                if own is None or own.by_run != key or key == run_id:  # what a run said of itself is not replaced by what others measured
                    found[key] = RunScore(value, error, run_id)
    return found


def _measured(runs: Any) -> "QuerySet[Any, Any]":
    of_them = standing().filter(Q(run=runs) | Q(subject_artifact__run=runs), metric=F("contract__metric")).order_by("created_at", "pk")
    return of_them.values_list("run_id", "subject_artifact__run_id", "benchmark_id", "contract_id", "value", "standard_error")
