"""What the upper floor knows of a benchmark: how many runs the caller has left on it."""

from datetime import datetime
from typing import Any, Literal

from django.utils import timezone
from ninja import Schema

from runs.queries.quota import quota_of
from workspaces.access import Kind, Permission
from workspaces.api.door import ApiRequest, Routes
from workspaces.models import Benchmark
from workspaces.queries.registry import current_contract

routes = Routes("benchmarks")


class RunsLeftOut(Schema):
    """All but `benchmark_id` and `zone` are null where the contract limits nobody. `next_allowed_at` is null while there are runs left."""

    benchmark_id: str
    allowed: int | None = None
    period: Literal["day", "week", "month"] | None = None
    used: int | None = None
    under_way: int | None = None
    left: int | None = None
    starts_at: datetime | None = None
    ends_at: datetime | None = None
    next_allowed_at: datetime | None = None
    zone: str


@routes.get("/benchmarks/{benchmark}/runs-left", needs=Permission.VIEW, kind=Kind.RUN, response=RunsLeftOut)
def get_runs_left(request: ApiRequest, benchmark: str) -> dict[str, Any]:
    """How many runs the caller may still ask for under the contract that holds now, and from when the next one is allowed.

    `used` are the caller's runs of this period that were or may still be scored, or that they cancelled; `under_way` of those still give their
    place back if they end without a score.
    """
    found = Benchmark.objects.find(benchmark)
    contract = current_contract(found.pk)
    zone = request.workspace.zone or "UTC"
    quota = quota_of(contract, request.actor.user, now=timezone.now(), workspace=request.workspace) if contract else None
    if quota is None:
        return {"benchmark_id": found.public_id, "zone": zone}
    return {
        "benchmark_id": found.public_id,
        "allowed": quota.allowed,
        "period": quota.period,
        "used": quota.used,
        "under_way": quota.under_way,
        "left": quota.left,
        "starts_at": quota.window.starts_at,
        "ends_at": quota.window.ends_at,
        "next_allowed_at": quota.next_allowed_at,
        "zone": zone,
    }
