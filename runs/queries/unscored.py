"""Runs of a benchmark that have ended and left no score under the contract that holds now: they stand on no rank, and it is said why."""

from dataclasses import dataclass, field

from django.db.models import Exists, OuterRef

from runs.lifecycle import TERMINAL, RunStatus
from runs.models import Run
from runs.queries.contract_facts import not_kept
from runs.queries.standing import standing
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
    what they left."""
    metric = metric or contract.metric
    scores = standing().filter(benchmark=contract.benchmark_id, contract=contract, metric=metric)
    runs = Run.objects.filter(benchmark=contract.benchmark_id, contract=contract, status__in=sorted(TERMINAL)).exclude(
        Exists(scores.filter(run=OuterRef("pk"))) | Exists(scores.filter(subject_artifact__run=OuterRef("pk")))
    )
    rows = list(runs.select_related("agent", "agent_version").order_by("-ended_at", "-pk")[:SHOWN])
    total = len(rows) if len(rows) < SHOWN else runs.count()
    gone = withdrawn("run", [run.pk for run in rows])
    return Unscored([UnscoredRun(run, _why(run, contract, metric, is_withdrawn=run.pk in gone)) for run in rows], total)


def _why(run: Run, contract: Contract, metric: str, *, is_withdrawn: bool) -> str:
    if is_withdrawn:
        return "It rests on something that was withdrawn."
    if run.reason:
        return run.reason
    if run.status != RunStatus.SUCCEEDED:
        return ""
    return not_kept(run, contract) or f"It ended without reporting {metric}."
