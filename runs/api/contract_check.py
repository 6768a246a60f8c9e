"""Contract checks: does a benchmark still measure what it did?"""

from datetime import datetime
from typing import Annotated, Any

from ninja import Schema, Status
from pydantic import Field

from runs.api.artifact import named
from runs.api.schema import NAMED_FLOATS, ReasonIn, Strict
from runs.commands.contract_check import MOST_DAYS, set_contract_check, stop_contract_check
from runs.models import CheckResult, ContractCheck, Evaluation
from runs.queries.contract_check import find_standing, results_of
from workspaces.access import Kind, Permission
from workspaces.api.door import ApiRequest, Routes
from workspaces.models import Benchmark
from workspaces.queries.registry import current_contract

routes = Routes("contract-checks")


class CheckIn(Strict):
    tolerance: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    interval_days: Annotated[int, Field(ge=1, le=MOST_DAYS)]


class CheckResultOut(Schema):
    id: str
    number: int
    status: str
    words: str
    run_id: str | None
    evaluation_id: str | None
    observed: float | NAMED_FLOATS | None
    created_at: datetime
    ended_at: datetime | None


class ContractCheckOut(Schema):
    id: str
    evaluation_id: str
    metric: str
    expected: float
    tolerance: float
    interval_days: int
    set_by: str
    next_at: datetime
    ended_at: datetime | None
    end_reason: str
    results: list[CheckResultOut]


@routes.get("/benchmarks/{benchmark}/contract-check", needs=Permission.VIEW, kind=Kind.BENCHMARK, response=ContractCheckOut)
def get_contract_check(request: ApiRequest, benchmark: str) -> dict[str, Any]:
    """The check of the contract version that holds now, with its newest results; 404 where none stands."""
    return _shape(find_standing(current_contract(Benchmark.objects.find(benchmark).pk)))


@routes.post(
    "/evaluations/{evaluation}/contract-check", needs=Permission.EDIT_REGISTRY, kind=Kind.BENCHMARK, response=ContractCheckOut, status=201
)
def post_contract_check(request: ApiRequest, evaluation: str, body: CheckIn) -> Status[dict[str, Any]]:
    """Measure again what this evaluation measured, every so many days, as ordinary runs of the caller."""
    found = Evaluation.objects.find(evaluation, "run", "subject_artifact")
    return Status(201, _shape(set_contract_check(actor=request.actor, evaluation=found, **body.dict())))


@routes.post("/benchmarks/{benchmark}/contract-check/stop", needs=Permission.EDIT_REGISTRY, kind=Kind.BENCHMARK, response=ContractCheckOut)
def post_stop(request: ApiRequest, benchmark: str, body: ReasonIn) -> dict[str, Any]:
    """Check it no more."""
    check = find_standing(current_contract(Benchmark.objects.find(benchmark).pk))
    return _shape(stop_contract_check(actor=request.actor, check=check, reason=body.reason))


def _shape(check: ContractCheck) -> dict[str, Any]:
    return {
        "id": check.public_id,
        "evaluation_id": check.reference.public_id,
        "metric": check.reference.metric,
        "expected": check.reference.value,
        "set_by": check.set_by.username,
        **{name: getattr(check, name) for name in ("tolerance", "interval_days", "next_at", "ended_at", "end_reason")},
        "results": [_result(result) for result in results_of(check)],
    }


def _result(result: CheckResult) -> dict[str, Any]:
    return {
        "id": result.public_id,
        "run_id": result.run.public_id if result.run else None,
        "evaluation_id": result.evaluation.public_id if result.evaluation else None,
        "observed": named(result.evaluation.value) if result.evaluation else None,
        **{name: getattr(result, name) for name in ("number", "status", "words", "created_at", "ended_at")},
    }
