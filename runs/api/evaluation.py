"""Evaluations: what was measured, of what, on what and by what; and every other time that the same was measured."""

from typing import Annotated, Any, Literal

from django.conf import settings
from ninja import Query, Schema

from runs.api.artifact import named
from runs.api.schema import EvaluationOut, EvaluationPage
from runs.models import Artifact, Evaluation, Run
from runs.queries.evaluation import find_evaluation, page_of_same
from runs.queries.run_page import find_run
from runs.queries.samples import compare, find_with_samples, line_of, page_of_samples, summary_of
from runs.sample_results import Fault, Sample
from workspaces.access import Kind, Permission
from workspaces.api.door import ApiRequest, Routes
from workspaces.api.registry_shapes import Cursor, Size, Text, named_by
from workspaces.audit import Refusal
from workspaces.ids import canonical
from workspaces.models import Benchmark, Withdrawal
from workspaces.queries.paging import newest_first
from workspaces.queries.withdrawal import standing_on, withdrawals_on

routes = Routes("evaluations")


class HoldoutOut(Schema):
    dataset: str
    version: int
    sha256: str


class MeasuredByOut(Schema):
    run_id: str
    kind: str
    agent_id: str
    agent_version: int
    agent_hash: str
    requested_by: str
    isolation: str
    parameters: dict[str, Any]
    seed: int | None


class SamplesReadOut(Schema):
    """`mean_score` is by the contract's rule: over all samples where it counts all, else of the `scored`; null where the rule gives none, which
    `mean_of` says."""

    artifact_id: str | None
    path: str
    samples: int
    counts: dict[str, int]
    scored: int
    mean_score: float | None
    mean_of: str
    doubts: list[str]


class EvaluationInFullOut(EvaluationOut):
    subject_artifact_id: str | None
    contract_hash: str
    holdout: HoldoutOut | None
    measured_by: MeasuredByOut | None
    samples_file: SamplesReadOut | None


class SampleOut(Schema):
    line: int
    id: str
    status: str
    score: float | None
    truth: str
    output: str


class FaultOut(Schema):
    line: int
    reason: str


class SamplesOut(Schema):
    items: list[SampleOut]
    faults: list[FaultOut]
    next: str | None


class PairedDifferenceOut(Schema):
    """Of the scores, candidate less champion; `low` and `high` hold 95 % of the bootstrap."""

    pairs: int
    mean: float
    low: float
    high: float
    better: int
    worse: int
    equal: int


class ComparisonOut(Schema):
    """`gain` is positive where the candidate is better, whichever direction the contract has; 95 % of the bootstrap lie above `gain_at_least`."""

    candidate: str
    champion: str
    refusal: str
    gain: float | None
    gain_at_least: float | None
    difference: PairedDifferenceOut | None
    only_candidate: int
    only_champion: int
    unscored: int


@routes.get("/evaluations", needs=Permission.VIEW, kind=Kind.EVALUATION, response=EvaluationPage)
def list_evaluations(
    request: ApiRequest, cursor: Cursor = "", limit: Size = settings.API_PAGE_SIZE, run: Text = "", benchmark: Text = ""
) -> dict[str, Any]:
    """Scores, newest first; of one run, or on one benchmark, where asked."""
    rows = Evaluation.objects.select_related("run", "benchmark", "contract")
    measured_by, measured_on = named_by(Run, run, "run"), named_by(Benchmark, benchmark, "benchmark")
    if measured_by:
        rows = rows.filter(run=measured_by)
    if measured_on:
        rows = rows.filter(benchmark=measured_on)
    found = newest_first(rows, cursor=cursor, size=limit)
    return {"items": _all(found.items), "next": found.next}


@routes.get("/evaluations/{evaluation}", needs=Permission.VIEW, kind=Kind.EVALUATION, response=EvaluationInFullOut)
def get_evaluation(request: ApiRequest, evaluation: str) -> dict[str, Any]:
    """One evaluation with what it rests on. What the caller may not see is null: the holdout without datasets, `measured_by` without runs."""
    row = find_evaluation(evaluation)
    run = find_run(row.run_id.hex)
    holdout = row.contract.holdout if request.rights.allows(Permission.VIEW, Kind.DATASET) else None
    return shape_evaluation(row, run, withdrawals_on("evaluation", row.pk)) | {
        "subject_artifact_id": row.subject_artifact.public_id if row.subject_artifact else None,
        "contract_hash": row.contract.content_hash,
        "holdout": {"dataset": holdout.dataset.slug, "version": holdout.number, "sha256": holdout.content_hash} if holdout else None,
        "measured_by": _measured_by(run) if request.rights.allows(Permission.VIEW, Kind.RUN) else None,
        "samples_file": _samples_file(row),
    }


@routes.get("/evaluations/{evaluation}/samples", needs=Permission.VIEW, kind=Kind.ARTIFACT, response=SamplesOut)
def get_samples(
    request: ApiRequest,
    evaluation: str,
    status: Annotated[Literal["", "ok", "errored", "abstained", "fault"], Query()] = "",
    cursor: Cursor = "",
    limit: Size = 50,
) -> dict[str, Any]:
    """Per-sample results in the order of the file that the run has left. Truth and output are cut at 400 characters; the whole is in the
    artifact."""
    page = page_of_samples(find_with_samples(evaluation), status=status, start=line_of(cursor), size=limit)
    rows = [row for row in page.rows if isinstance(row, Sample)]
    faults = [row for row in page.rows if isinstance(row, Fault)]
    return {
        "items": [{name: getattr(row, name) for name in ("line", "id", "status", "score", "truth", "output")} for row in rows],
        "faults": [{"line": row.line, "reason": row.reason} for row in faults],
        "next": str(page.next_line) if page.next_line else None,
    }


@routes.get("/evaluations/{evaluation}/comparison", needs=Permission.VIEW, kind=Kind.ARTIFACT, response=ComparisonOut)
def get_comparison(request: ApiRequest, evaluation: str, against: Annotated[str, Query(max_length=100)] = "") -> dict[str, Any]:
    """The evaluation as candidate against another as champion, over the samples that both have: paired bootstrap of the mean difference."""
    candidate = find_with_samples(evaluation)
    if not against:
        raise Refusal("Name the evaluation that it is held against.", field="against")
    found = compare(candidate, find_with_samples(against))
    names = ("pairs", "mean", "low", "high", "better", "worse", "equal")
    return {
        "candidate": found.candidate.public_id,
        "champion": found.champion.public_id,
        "refusal": found.refusal,
        "gain": found.gain,
        "gain_at_least": found.least_gain,
        "difference": {name: getattr(found.found, name) for name in names} if found.found else None,
        "only_candidate": found.only_candidate,
        "only_champion": found.only_champion,
        "unscored": found.unscored,
    }


@routes.get("/evaluations/{evaluation}/history", needs=Permission.VIEW, kind=Kind.EVALUATION, response=EvaluationPage)
def get_history(request: ApiRequest, evaluation: str, cursor: Cursor = "", limit: Size = settings.API_PAGE_SIZE) -> dict[str, Any]:
    """Every evaluation of the same subject by the same metric of the same benchmark, newest first; this one is among them."""
    found = page_of_same(find_evaluation(evaluation), cursor=cursor, size=limit)
    return {"items": _all(found.items), "next": found.next}


def _all(rows: list[Evaluation]) -> list[dict[str, Any]]:
    marked = standing_on(("evaluation", row.pk) for row in rows)
    return [shape_evaluation(row, row.run, marked.get(("evaluation", row.pk), [])) for row in rows]


def shape_evaluation(row: Evaluation, run: Run, withdrawn_by: list[Withdrawal]) -> dict[str, Any]:
    return {
        "id": row.public_id,
        "uuid": str(row.pk),
        "run_id": run.public_id,
        "benchmark_id": row.benchmark.public_id,
        "contract_version": row.contract.version,
        "metric": row.metric,
        "value": named(row.value),
        "standard_error": named(row.standard_error),
        "samples": row.samples,
        "errored": row.errored,
        "abstained": row.abstained,
        "withdrawn_by": [withdrawal.public_id for withdrawal in withdrawn_by],
        "created_at": row.created_at,
    }


def _samples_file(row: Evaluation) -> dict[str, Any] | None:
    found = summary_of(row)
    if found is None:
        return None
    key = row.samples_artifact_id
    return {
        "artifact_id": canonical(Artifact.prefix, None, key) if key else None,
        "path": found.path,
        "samples": found.samples,
        "counts": dict(found.counts),
        "scored": found.scored,
        "mean_score": found.mean.value,
        "mean_of": found.mean.of,
        "doubts": found.doubts,
    }


def _measured_by(run: Run) -> dict[str, Any]:
    return {
        "run_id": run.public_id,
        "kind": run.kind,
        "agent_id": run.agent.public_id,
        "agent_version": run.agent_version.number,
        "agent_hash": run.agent_version.content_hash,
        "requested_by": run.requested_by.username,
        "isolation": run.isolation,
        "parameters": run.parameters,
        "seed": run.seed,
    }
