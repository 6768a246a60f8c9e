"""One run as the API answers it: everything from which its score leads to data, code, person and cost, by ids and by addresses."""

from dataclasses import asdict
from typing import Any

from django.db.models import Q, QuerySet
from django.urls import reverse

from runs.api.artifact import named
from runs.models import Attempt, Certificate, Evaluation, Run, RunInput, Sweep
from runs.queries.bad_lines import bad_files, bad_lines_question
from runs.queries.run_input import inputs_of
from runs.queries.run_page import RELATED, RunState, state_of, state_questions
from workspaces import ids, kept_query
from workspaces.api.door import ApiRequest
from workspaces.queries.withdrawal import marks_on

LOGS = ("stdout.log", "stderr.log")


def find_run(text: str) -> Run:
    """The run with everything that its answer names. Raises NotFound."""
    return Run.objects.find(text, *RELATED)


def row_of(request: ApiRequest, run: Run) -> dict[str, Any]:
    """What a list says of it."""
    return {
        "id": run.public_id,
        "uuid": str(run.pk),
        "url": reverse("run", args=[request.workspace.slug, run.public_id]),
        "name": run.name,
        "status": run.status,
        "benchmark_id": run.benchmark.public_id,
        "agent_id": run.agent.public_id,
        "compute_pool_id": run.pool.public_id,
        "spent_gpu_ms": run.spent_gpu_ms,
        "created_at": run.created_at,
        "ended_at": run.ended_at,
    }


def shape(request: ApiRequest, run: Run) -> dict[str, Any]:
    read, measured = (kept_query.Question(build, (), {"run": run.pk}) for build in (_read, _measured))
    beside = (read, measured, bad_lines_question(run.pk), marks_on([("run", run.pk)]))
    *found, rows, scores, watches, marks = kept_query.ask_together([*state_questions(run), *beside])
    state = state_of(run, found)
    return {
        **row_of(request, run),
        "number": run.number,
        "reason_code": run.reason_code,
        "reason": run.reason,
        "kind": run.kind,
        "contract_version": run.contract.version,
        "contract_hash": run.contract.content_hash,
        "agent_version": run.agent_version.number,
        "agent_version_id": run.agent_version.public_id,
        "agent_version_hash": run.agent_version.content_hash,
        "code_hash": run.agent_version.bundle_hash,
        "inputs": [_input(row) for row in rows],
        "parameters": run.parameters,
        "seed": run.seed,
        "trigger": run.trigger,
        "trigger_reason": run.trigger_reason,
        "requested_by": run.requested_by.username,
        "retry_of": ids.canonical(Run.prefix, None, run.retry_of_id) if run.retry_of_id else None,
        "sweep_id": ids.canonical(Sweep.prefix, None, run.sweep_id) if run.sweep_id else None,
        "certificate": _certificate(run),
        "approval": state.approval.public_id if state.approval else None,
        "content_hash": run.content_hash,
        "isolation": run.isolation,
        "priority": run.priority,
        "wall_seconds": run.wall_seconds,
        "reserved_gpu_ms": run.reserved_gpu_ms,
        "started_at": run.started_at,
        "withdrawn_by": [mark.withdrawal.public_id for mark in marks if mark.kind == "run"],
        "cost": _cost(run, state),
        "scores": [_score(row) for row in scores],
        "attempts": [_attempt(row) for row in state.attempts],
        "bad_lines": [asdict(file) for file in bad_files(watches)],
        "links": _links(request, run, state),
    }


def _certificate(run: Run) -> str:
    return ids.canonical(Certificate.prefix, None, run.certificate_id)


def _input(row: RunInput) -> dict[str, Any]:
    version, artifact = row.dataset_version, row.artifact
    return {
        "slug": row.slug,
        "kind": row.kind,
        "sha256": row.sha256,
        "dataset_id": version.dataset.public_id if version else None,
        "dataset_version": version.number if version else None,
        "dataset_version_id": version.public_id if version else None,
        "role": version.role if version else None,
        "artifact_id": artifact.public_id if artifact else None,
        "made_by_run_id": artifact.run.public_id if artifact else None,
    }


def _cost(run: Run, state: RunState) -> dict[str, Any]:
    pool = run.frozen["pool"]
    return {
        "micros": state.cost_micros,
        "currency": pool["currency"],
        "is_settled": state.is_settled,
        "gpu_ms": state.gpu_ms,
        "api_micros": run.spent_api_micros,
        "price_micros_per_gpu_hour": pool["price_micros_per_gpu_hour"],
    }


def _measured(run: Any) -> "QuerySet[Evaluation]":
    """What the run measured itself, and what others measured of the artifacts that it made."""
    rows = Evaluation.objects.filter(Q(run=run) | Q(subject_artifact__run=run))
    return rows.select_related("run", "benchmark", "contract").order_by("created_at", "pk")[:100]


def _read(run: Any) -> "QuerySet[RunInput]":
    return inputs_of(run, "dataset_version__dataset", "artifact__run")


def _score(row: Evaluation) -> dict[str, Any]:
    return {
        "id": row.public_id,
        "run_id": row.run.public_id,
        "benchmark_id": row.benchmark.public_id,
        "contract_version": row.contract.version,
        "metric": row.metric,
        "value": named(row.value),
        "standard_error": named(row.standard_error),
        "samples": row.samples,
        "errored": row.errored,
        "abstained": row.abstained,
    }


def _attempt(row: Attempt) -> dict[str, Any]:
    copied = (
        "number",
        "status",
        "started_at",
        "ended_at",
        "exit_code",
        "exit_signal",
        "exit_reason",
        "peak_memory_bytes",
        "cpu_ms",
    )
    return {"id": row.public_id, "compute_pool_id": row.pool.public_id, **{name: getattr(row, name) for name in copied}}


def _links(request: ApiRequest, run: Run, state: RunState) -> dict[str, Any]:
    """Addresses of this API where the rest is."""
    base = f"/api/v1/workspaces/{request.workspace.slug}"
    own = f"{base}/runs/{run.public_id}"
    return {
        "benchmark": f"{base}/benchmarks/{run.benchmark.slug}",
        "code": f"{base}/agents/{run.agent.slug}/versions/{run.agent_version.number}",
        "certificate": f"{base}/certificates/{_certificate(run)}",
        "approval": f"{base}/approvals/{state.approval.public_id}" if state.approval else None,
        "evaluations": f"{base}/evaluations?run={run.public_id}",
        "artifacts": f"{base}/artifacts?run={run.public_id}",
        "metrics": f"{own}/metrics",
        "logs": {name: f"{own}/logs?name={name}" for name in LOGS},
        "ledger": f"{base}/ledger?run={run.public_id}",
        "events": f"{base}/events?subject={run.public_id}",
    }
