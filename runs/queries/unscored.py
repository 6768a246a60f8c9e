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
LOOKED_AT = 1000  # runs of the contract, from the newest


@dataclass(frozen=True, slots=True)
class UnscoredRun:
    run: Run
    reason: str


@dataclass(frozen=True, slots=True)
class Unscored:
    """The newest of them, and how many there are among the newest LOOKED_AT runs of the contract; `has_older` says that there are older runs."""

    rows: list[UnscoredRun] = field(default_factory=list)
    total: int = 0
    has_older: bool = False

    @property
    def looked_at(self) -> int:
        return LOOKED_AT


def unscored(contract: Contract, metric: str = "") -> Unscored:
    """Of the contract's first metric, or another. Runs that may still be scored are none of them, nor are those of which another run has scored
    what they left, nor those of contract checks."""
    metric = metric or contract.metric
    of = {"benchmark": contract.benchmark_id, "contract": contract.pk}
    [found, older] = kept_query.ask_together(
        [kept_query.Question(_newest, (LOOKED_AT,), {**of, "metric": metric}), kept_query.Question(_first_unseen, (LOOKED_AT,), of)]
    )
    keys = [key for (key,) in found]
    rows = {run.pk: run for run in kept_query.rows(Run, pk__in=keys, related=("agent", "agent_version"))} if keys else {}
    total = len(keys) if len(keys) < SHOWN else _without_score(LOOKED_AT, **of, metric=metric).count()
    gone = withdrawn("run", keys)
    told = [UnscoredRun(rows[key], _why(rows[key], contract, metric, is_withdrawn=key in gone)) for key in keys]
    return Unscored(told, total, has_older=bool(older))


def _runs(benchmark: Any, contract: Any) -> "QuerySet[Run]":
    return Run.objects.filter(benchmark=benchmark, contract=contract).order_by("-created_at")


def _first_unseen(after: int, **of: Any) -> "QuerySet[Run, Any]":
    return _runs(**of).values_list("pk")[after : after + 1]


def _without_score(among: int, benchmark: Any, contract: Any, metric: Any) -> "QuerySet[Run]":
    scores = standing().filter(benchmark=benchmark, contract=contract, metric=metric)
    newest = _runs(benchmark, contract).values("pk")[:among]
    ended = Run.objects.filter(pk__in=newest, status__in=sorted(TERMINAL)).exclude(pk__in=check_runs())
    return ended.filter(~Exists(scores.filter(run=OuterRef("pk"))), ~Exists(scores.filter(subject_artifact__run=OuterRef("pk"))))


def _newest(among: int, **of: Any) -> "QuerySet[Run, Any]":
    return _without_score(among, **of).order_by("-ended_at", "-pk").values_list("pk")[:SHOWN]


def _why(run: Run, contract: Contract, metric: str, *, is_withdrawn: bool) -> str:
    if is_withdrawn:
        return "It rests on something that was withdrawn."
    if run.reason:
        return run.reason
    if run.status != RunStatus.SUCCEEDED:
        return ""
    return not_kept(run, contract) or f"It ended without reporting {metric}."
