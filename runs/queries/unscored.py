"""Runs of a benchmark that have ended and left no score under the contract that holds now: they stand on no rank, and it is said why."""

from dataclasses import dataclass, field
from typing import Any

from django.db.models import Exists, OuterRef, QuerySet

from runs.lifecycle import TERMINAL, RunStatus
from runs.models import Run
from runs.queries.contract_facts import not_kept
from runs.queries.standing import check_runs, standing
from workspaces import kept_query
from workspaces.models import Contract
from workspaces.queries.withdrawal import withdrawn

SHOWN = 50


@dataclass(frozen=True, slots=True)
class UnscoredRun:
    run: Run
    reason: str


@dataclass(frozen=True, slots=True)
class Unscored:
    """The newest of them, and how many there are."""

    rows: list[UnscoredRun] = field(default_factory=list)
    total: int = 0


def unscored(contract: Contract, metric: str = "") -> Unscored:
    """Of the contract's first metric, or another. Runs that may still be scored are none of them, nor are those of which another run has scored
    what they left, nor those of contract checks."""
    metric = metric or contract.metric
    of = {"benchmark": contract.benchmark_id, "contract": contract.pk, "metric": metric}
    rows: list[Run] = kept_query.ask(_newest, **of)
    total = len(rows) if len(rows) < SHOWN else _without_score(**of).count()
    gone = withdrawn("run", [run.pk for run in rows])
    return Unscored([UnscoredRun(run, _why(run, contract, metric, is_withdrawn=run.pk in gone)) for run in rows], total)


def _without_score(benchmark: Any, contract: Any, metric: Any) -> "QuerySet[Run]":
    scores = standing().filter(benchmark=benchmark, contract=contract, metric=metric)
    ended = Run.objects.filter(benchmark=benchmark, contract=contract, status__in=sorted(TERMINAL)).exclude(pk__in=check_runs())
    return ended.exclude(Exists(scores.filter(run=OuterRef("pk"))) | Exists(scores.filter(subject_artifact__run=OuterRef("pk"))))


def _newest(**of: Any) -> "QuerySet[Run]":
    return _without_score(**of).select_related("agent", "agent_version").order_by("-ended_at", "-pk")[:SHOWN]


def _why(run: Run, contract: Contract, metric: str, *, is_withdrawn: bool) -> str:
    if is_withdrawn:
        return "It rests on something that was withdrawn."
    if run.reason:
        return run.reason
    if run.status != RunStatus.SUCCEEDED:
        return ""
    return not_kept(run, contract) or f"It ended without reporting {metric}."
