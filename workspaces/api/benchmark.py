"""`/benchmarks`: list, create, read, and publish the next version of the contract."""

from typing import Any

from ninja import Status

from workspaces.access import Kind, Permission
from workspaces.api.door import ApiRequest, Routes
from workspaces.api.registry_shapes import (
    BenchmarkImportIn,
    BenchmarkIn,
    BenchmarkList,
    BenchmarkOut,
    ContractIn,
    ContractList,
    ContractOut,
    ContractPublish,
    Cursor,
    Size,
    Text,
    benchmark_out,
    contract_out,
    made_before,
)
from workspaces.commands.benchmark import create_benchmark, publish_contract
from workspaces.commands.benchmark_copy import follow_source, import_benchmark
from workspaces.contract_metrics import Metric
from workspaces.models import Benchmark, Contract
from workspaces.queries.paging import in_order
from workspaces.queries.registry import benchmark_rows, contracts_of, find_dataset_version, find_version_of_agent

routes = Routes("benchmarks")

DATA = ("holdout", "train", "validation")  # roles in which a contract names a dataset version


@routes.get("/benchmarks", needs=Permission.VIEW, kind=Kind.BENCHMARK, response=BenchmarkList)
def list_benchmarks(request: ApiRequest, q: Text = "", cursor: Cursor = "", limit: Size = 50) -> Any:
    """Benchmarks, newest first; `q` looks for a text in name and slug."""
    page = benchmark_rows(text=q, cursor=cursor, size=limit)
    return {"items": [benchmark_out(request, row.benchmark, row.contract) for row in page.items], "next": page.next}


@routes.post("/benchmarks", needs=Permission.EDIT_REGISTRY, kind=Kind.BENCHMARK, response=BenchmarkOut, status=201)
def post_benchmark(request: ApiRequest, body: BenchmarkIn) -> Any:
    """Create a benchmark, with the first version of its contract where one is given."""
    benchmark = made_before(request, Benchmark) or create_benchmark(
        actor=request.actor,
        id=request.chosen_id,
        **body.dict(exclude={"contract"}),
        contract=_contract(body.contract) if body.contract else None,
    )
    return Status(201, _whole(request, benchmark))


@routes.post("/benchmarks/import", needs=Permission.EDIT_REGISTRY, kind=Kind.BENCHMARK, response=BenchmarkOut, status=201)
def post_import(request: ApiRequest, body: BenchmarkImportIn) -> Any:
    """Copy the public benchmark of another workspace: its contract, with the hash it has there. Data does not travel."""
    copy = made_before(request, Benchmark) or import_benchmark(actor=request.actor, id=request.chosen_id, **body.dict())
    return Status(201, _whole(request, copy))


@routes.post("/benchmarks/{benchmark}/source", needs=Permission.EDIT_REGISTRY, kind=Kind.BENCHMARK, response=ContractOut, status=201)
def post_source(request: ApiRequest, benchmark: str) -> Any:
    """Take over what the source of a frozen copy says now, as the copy's next version."""
    found = Benchmark.objects.find(benchmark)
    contract = made_before(request, Contract) or follow_source(actor=request.actor, benchmark=found, id=request.chosen_id)
    return Status(201, contract_out(contract))


@routes.get("/benchmarks/{benchmark}", needs=Permission.VIEW, kind=Kind.BENCHMARK, response=BenchmarkOut)
def get_benchmark(request: ApiRequest, benchmark: str) -> Any:
    """One benchmark with the contract that holds now."""
    return _whole(request, Benchmark.objects.find(benchmark))


@routes.get("/benchmarks/{benchmark}/contracts", needs=Permission.VIEW, kind=Kind.BENCHMARK, response=ContractList)
def list_contracts(request: ApiRequest, benchmark: str, cursor: Cursor = "", limit: Size = 50) -> Any:
    """Every version of the contract, newest first."""
    page = in_order(contracts_of(Benchmark.objects.find(benchmark)), lambda contract: (-contract.version,), cursor=cursor, size=limit)
    return {"items": [contract_out(contract) for contract in page.items], "next": page.next}


@routes.post("/benchmarks/{benchmark}/contracts", needs=Permission.EDIT_REGISTRY, kind=Kind.BENCHMARK, response=ContractOut, status=201)
def post_contract(request: ApiRequest, benchmark: str, body: ContractPublish) -> Any:
    """Publish the next version of the contract; from then on only scores under it compare."""
    found = Benchmark.objects.find(benchmark)
    contract = made_before(request, Contract) or publish_contract(
        actor=request.actor, benchmark=found, id=request.chosen_id, reason=body.reason, **_contract(body)
    )
    return Status(201, contract_out(contract))


def _contract(body: ContractIn) -> dict[str, Any]:
    fields = body.dict(exclude={"reason", "metrics", "evaluator", *DATA})
    named = {role: getattr(body, role) for role in DATA}
    return {
        **fields,
        **{role: find_dataset_version(name) if name else None for role, name in named.items()},
        "metrics": [Metric(**metric.dict()) for metric in body.metrics],
        "evaluator": find_version_of_agent(body.evaluator) if body.evaluator else None,
    }


def _whole(request: ApiRequest, benchmark: Benchmark) -> dict[str, Any]:
    return benchmark_out(request, benchmark, next(iter(contracts_of(benchmark)), None))
