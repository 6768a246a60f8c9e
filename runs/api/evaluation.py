"""Evaluations: what was measured, of what, on what and by what; and every other time that the same was measured."""

from typing import Any

from django.conf import settings
from ninja import Schema

from runs.api.artifact import named
from runs.api.schema import EvaluationOut, EvaluationPage
from runs.models import Evaluation, Run
from runs.queries.evaluation import find_evaluation, page_of_same
from runs.queries.run_page import find_run
from workspaces.access import Kind, Permission
from workspaces.api.door import ApiRequest, Routes
from workspaces.api.registry_shapes import Cursor, Size, Text, named_by
from workspaces.models import Benchmark
from workspaces.queries.paging import newest_first
from workspaces.queries.withdrawal import withdrawals_on

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


class EvaluationInFullOut(EvaluationOut):
    subject_artifact_id: str | None
    contract_hash: str
    holdout: HoldoutOut | None
    measured_by: MeasuredByOut | None
    withdrawn_by: list[str]


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
    return {"items": [shape_evaluation(row, row.run) for row in found.items], "next": found.next}


@routes.get("/evaluations/{evaluation}", needs=Permission.VIEW, kind=Kind.EVALUATION, response=EvaluationInFullOut)
def get_evaluation(request: ApiRequest, evaluation: str) -> dict[str, Any]:
    """One evaluation with what it rests on. What the caller may not see is null: the holdout without datasets, `measured_by` without runs."""
    row = find_evaluation(evaluation)
    run = find_run(row.run_id.hex)
    holdout = row.contract.holdout if request.rights.allows(Permission.VIEW, Kind.DATASET) else None
    return shape_evaluation(row, run) | {
        "subject_artifact_id": row.subject_artifact.public_id if row.subject_artifact else None,
        "contract_hash": row.contract.content_hash,
        "holdout": {"dataset": holdout.dataset.slug, "version": holdout.number, "sha256": holdout.content_hash} if holdout else None,
        "measured_by": _measured_by(run) if request.rights.allows(Permission.VIEW, Kind.RUN) else None,
        "withdrawn_by": [withdrawal.public_id for withdrawal in withdrawals_on("evaluation", row.pk)],
    }


@routes.get("/evaluations/{evaluation}/history", needs=Permission.VIEW, kind=Kind.EVALUATION, response=EvaluationPage)
def get_history(request: ApiRequest, evaluation: str, cursor: Cursor = "", limit: Size = settings.API_PAGE_SIZE) -> dict[str, Any]:
    """Every evaluation of the same subject by the same metric of the same benchmark, newest first; this one is among them."""
    found = page_of_same(find_evaluation(evaluation), cursor=cursor, size=limit)
    return {"items": [shape_evaluation(row, row.run) for row in found.items], "next": found.next}


def shape_evaluation(row: Evaluation, run: Run) -> dict[str, Any]:
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
        "created_at": row.created_at,
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
