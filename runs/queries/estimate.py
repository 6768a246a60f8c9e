"""What a launch would reserve and cost, what like runs have used, and what every limit says: the look before anything is written."""

from dataclasses import dataclass
from statistics import median

from django.utils import timezone

from runs.admission import Verdict, decide
from runs.admission_facts import QuotaFacts
from runs.launch import LaunchRequest
from runs.lifecycle import RunStatus
from runs.models import Run
from runs.queries.admission import admission_facts
from runs.queries.frozen import Prepared
from runs.queries.launch_request import prepare
from runs.reservation import cost_micros
from workspaces.models import AgentVersion, Contract, Pool, User

LIKE_RUNS = 20


@dataclass(frozen=True, slots=True)
class Estimate:
    """The answer before a launch. `reserved_gpu_ms` is the upper bound; `median_gpu_ms` what like runs have really used."""

    verdict: Verdict
    prepared: Prepared
    quota: QuotaFacts | None  # None: the contract limits no person
    reserved_gpu_ms: int
    wall_seconds: int
    median_gpu_ms: int | None
    like_runs: int
    cost_micros: int
    currency: str

    @property
    def pool(self) -> Pool:
        return self.prepared.pool

    @property
    def agent_version(self) -> AgentVersion:
        return self.prepared.version

    @property
    def contract(self) -> Contract:
        return self.prepared.contract


def estimate(request: LaunchRequest, *, person: User | None = None, is_draft: bool = False) -> Estimate:
    """Look without locks and without leaving a trace; `person` is whom the run would count for; without
    one no limit per person speaks. Raises NotFound for names that are not here, Refusal for input that cannot be.

    Parameters bear on no limit: a draft's are not checked, so that the answer stands while they are being written.
    """
    prepared = prepare(request, is_draft=is_draft)
    facts = admission_facts(prepared, now=timezone.now(), person=person, priority=request.priority)
    spent = list(
        Run.objects.filter(agent_version=prepared.version, benchmark=prepared.benchmark, status=RunStatus.SUCCEEDED)
        .order_by("-created_at")
        .values_list("spent_gpu_ms", flat=True)[:LIKE_RUNS]
    )
    return Estimate(
        verdict=decide(facts),
        prepared=prepared,
        quota=facts.quota,
        reserved_gpu_ms=prepared.gpu_ms,
        wall_seconds=prepared.wall_seconds,
        median_gpu_ms=int(median(spent)) if spent else None,
        like_runs=len(spent),
        cost_micros=cost_micros(prepared.gpu_ms, prepared.pool.price_micros_per_gpu_hour) + prepared.api_micros,
        currency=prepared.pool.currency,
    )
