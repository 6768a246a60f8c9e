"""One evaluation with everything that its page says: what was measured, on what, by what, and what else was measured of the same."""

from dataclasses import dataclass
from typing import Any

from django.db.models import Max, Q, QuerySet

from runs.admission import EVALUATE
from runs.models import Artifact, Evaluation, Run, RunInput
from runs.queries.artifact import RECORDS
from runs.queries.run_page import find_run, inputs_shown
from workspaces import ids, kept_query
from workspaces.models import Contract, NotFound, Pool, Withdrawal
from workspaces.queries.paging import Page, newest_first
from workspaces.queries.withdrawal import standing_on

HISTORY = 20  # evaluations of one page of the history
OTHERS = 20  # other metrics that are shown of the same run
OUTPUTS = 20
_HOLDOUT = ("holdout_id", "content", "accepts_no_isolation_reason")
_CONTRACT = ("version", "metric", "unit", "direction", "benchmark_id", "content_hash", "metrics", "counts_all_samples", *_HOLDOUT)


@dataclass(frozen=True, slots=True)
class Past:
    """An evaluation of the history; `is_withdrawn`: it rests on something withdrawn now."""

    evaluation: Evaluation
    is_withdrawn: bool
    is_this: bool


@dataclass(frozen=True, slots=True)
class Measurement:
    """An evaluation and what stands around it. Lists are cut; `outputs_count` is of all."""

    evaluation: Evaluation
    run: Run
    inputs: list[RunInput]
    outputs: list[Artifact]
    outputs_count: int
    others: list[Evaluation]
    history: list[Past]
    next_cursor: str
    newest_contract: int
    withdrawn_by: list[Withdrawal]

    @property
    def subject(self) -> Artifact | None:
        """The artifact that was measured; None where the run measured its own work."""
        found: Artifact | None = self.evaluation.subject_artifact
        return found

    @property
    def is_independent(self) -> bool:
        """Did another agent measure it than the one that made it?"""
        return self.run.kind == EVALUATE

    @property
    def is_current(self) -> bool:
        return bool(self.evaluation.contract.version == self.newest_contract)

    @property
    def is_isolated(self) -> bool:
        """Did the pool keep the run away from what it was not given?"""
        return self.run.isolation != Pool.Isolation.NONE


def find_evaluation(text: str) -> Evaluation:
    """With benchmark, contract and holdout, and with the artifact that was measured. Raises NotFound."""
    pk, _ = ids.spellings(Evaluation.prefix, text)
    found: list[Evaluation] = kept_query.ask(_shown, pk=pk) if pk is not None else []
    if not found:
        raise NotFound("evaluation")
    return found[0]


def measurement(text: str, *, cursor: str = "") -> Measurement:
    """Raises NotFound for an evaluation that is not here, BadCursor."""
    evaluation = find_evaluation(text)
    run = find_run(evaluation.run_id.hex)
    history = newest_first(same_subject(evaluation).select_related("run__agent_version", "contract"), cursor=cursor, size=HISTORY)
    marked = standing_on(("evaluation", pk) for pk in {evaluation.pk, *(row.pk for row in history.items)})
    results = Artifact.objects.filter(run=run, deleted_at=None).exclude(kind__in=RECORDS)
    outputs = list(results.select_related("blob").order_by("path")[: OUTPUTS + 1])
    return Measurement(
        evaluation=evaluation,
        run=run,
        inputs=inputs_shown(run),
        outputs=outputs[:OUTPUTS],
        outputs_count=results.count() if len(outputs) > OUTPUTS else len(outputs),
        others=list(Evaluation.objects.filter(run=run).exclude(pk=evaluation.pk).select_related("benchmark").order_by("metric")[:OTHERS]),
        history=[Past(row, ("evaluation", row.pk) in marked, row.pk == evaluation.pk) for row in history.items],
        next_cursor=history.next or "",
        newest_contract=Contract.objects.filter(benchmark=evaluation.benchmark_id).aggregate(newest=Max("version"))["newest"] or 0,
        withdrawn_by=marked.get(("evaluation", evaluation.pk), []),
    )


def same_subject(evaluation: Evaluation) -> "QuerySet[Evaluation]":
    """Every evaluation of what this one measured, by this metric of this benchmark; none was ever overwritten. A run that measured its own work
    and the evaluations of what it left are of one subject."""
    rows = Evaluation.objects.filter(benchmark=evaluation.benchmark_id, metric=evaluation.metric)
    if evaluation.subject_artifact_id is not None:
        return rows.filter(subject_artifact=evaluation.subject_artifact_id)
    left = list(Artifact.objects.filter(run=evaluation.run_id).exclude(kind__in=RECORDS).values_list("pk", flat=True)[:1000])
    return rows.filter(Q(run=evaluation.run_id) | Q(subject_artifact__in=left))


def page_of_same(evaluation: Evaluation, *, cursor: str = "", size: int = HISTORY) -> Page[Evaluation]:
    """The history alone, newest first. Raises BadCursor."""
    return newest_first(same_subject(evaluation).select_related("run", "benchmark", "contract"), cursor=cursor, size=size)


def _shown(pk: Any) -> "QuerySet[Evaluation]":
    own = tuple(field.name for field in Evaluation._meta.concrete_fields)
    related = ("benchmark__slug", "benchmark__name", *(f"contract__{name}" for name in _CONTRACT))
    holdout = ("number", "content_hash", "records", "dataset__slug", "dataset__name")
    subject = ("subject_artifact__name", "subject_artifact__path", "subject_artifact__kind", "subject_artifact__run__name")
    rows = Evaluation.objects.select_related("benchmark", "contract__holdout__dataset", "subject_artifact__run").filter(pk=pk)
    return rows.only(*own, *related, *(f"contract__holdout__{name}" for name in holdout), *subject)
