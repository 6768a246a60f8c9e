"""Runs of a benchmark that have ended and left no score under the contract that holds now: they stand on no rank, and it is said why."""

from dataclasses import dataclass, field

from django.db.models import Exists, OuterRef

from runs.lifecycle import TERMINAL, RunStatus
from runs.models import Evaluation, Run
from workspaces.models import Contract

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


def unscored(contract: Contract) -> Unscored:
    """Runs that may still be scored are none of them, nor are those of which another run has scored what they left."""
    scores = Evaluation.objects.filter(benchmark=contract.benchmark_id, contract=contract, metric=contract.metric)
    runs = Run.objects.filter(benchmark=contract.benchmark_id, contract=contract, status__in=sorted(TERMINAL)).exclude(
        Exists(scores.filter(run=OuterRef("pk"))) | Exists(scores.filter(subject_artifact__run=OuterRef("pk")))
    )
    rows = list(runs.select_related("agent", "agent_version").order_by("-ended_at", "-pk")[:SHOWN])
    total = len(rows) if len(rows) < SHOWN else runs.count()
    return Unscored([UnscoredRun(run, _why(run, contract)) for run in rows], total)


def _why(run: Run, contract: Contract) -> str:
    if run.reason:
        return run.reason
    return f"It ended without reporting {contract.metric}." if run.status == RunStatus.SUCCEEDED else ""
