"""Runs: ask, look, cancel, retry; and certificates."""

from decimal import Decimal
from typing import Any

from django.conf import settings
from ninja import Status

from runs.api.run_answer import find_run, row_of, shape
from runs.api.schema import (
    CancelledOut,
    CancelManyIn,
    CertificateOut,
    EstimateOut,
    LaunchIn,
    LogOut,
    Offset,
    Piece,
    ReasonIn,
    RunOut,
    RunPage,
)
from runs.commands.cancel_many import cancel_runs
from runs.commands.launch import launch_run, retry_run
from runs.commands.lost import declare_lost
from runs.commands.run import cancel as cancel_run
from runs.launch import LaunchRequest
from runs.lifecycle import RunStatus
from runs.models import Certificate, Run, Sweep
from runs.queries.cancelling import key_of
from runs.queries.estimate import estimate
from runs.queries.log import read_log, whole_characters
from workspaces.access import Kind, Permission
from workspaces.api.door import ApiRequest, Routes
from workspaces.api.registry_shapes import Cursor, Size, Text, named_by
from workspaces.audit import Refusal
from workspaces.models import Agent, Benchmark, Pool
from workspaces.queries.paging import newest_first
from workspaces.units import MS_PER_HOUR

routes = Routes("runs")
certificates = Routes("certificates")


@routes.get("/runs", needs=Permission.VIEW, kind=Kind.RUN, response=RunPage)
def list_runs(
    request: ApiRequest,
    cursor: Cursor = "",
    limit: Size = settings.API_PAGE_SIZE,
    status: RunStatus | None = None,
    benchmark: Text = "",
    agent: Text = "",
    pool: Text = "",
    sweep: Text = "",
) -> dict[str, Any]:
    """Runs of the workspace, newest first; of one status, benchmark, agent, pool or sweep, where asked."""
    named = {
        "benchmark": named_by(Benchmark, benchmark, "benchmark"),
        "agent": named_by(Agent, agent, "agent"),
        "pool": named_by(Pool, pool, "pool"),
        "sweep": named_by(Sweep, sweep, "sweep"),
        "status": status,
    }
    rows = Run.objects.select_related("benchmark", "agent", "pool").filter(**{name: value for name, value in named.items() if value})
    found = newest_first(rows, cursor=cursor, size=limit)
    return {"items": [row_of(request, run) for run in found.items], "next": found.next}


@routes.post("/runs", needs=Permission.LAUNCH_RUN, kind=Kind.RUN, response=RunOut, status=201)
def launch(request: ApiRequest, body: LaunchIn) -> Status[dict[str, Any]]:
    """Ask for a run. 201 with `status` queued or awaiting_approval; 409 with `certificate` where a limit says no."""
    launched = launch_run(actor=request.actor, request=launch_request(body), run_id=request.chosen_id)
    return Status(201, shape(request, launched.run))


@routes.post("/runs/estimate", needs=Permission.LAUNCH_RUN, kind=Kind.RUN, response=EstimateOut)
def estimate_run(request: ApiRequest, body: LaunchIn) -> dict[str, Any]:
    """What a launch would reserve and what every limit says; nothing is written."""
    found = estimate(launch_request(body), person=request.actor.user)
    return {
        "verdict": found.verdict.answer,
        "limits": found.verdict.as_json(),
        "reserved_gpu_ms": found.reserved_gpu_ms,
        "wall_seconds": found.wall_seconds,
        "median_gpu_ms": found.median_gpu_ms,
        "like_runs": found.like_runs,
        "cost_micros": found.cost_micros,
        "currency": found.currency,
    }


@routes.post("/runs/cancel", needs=Permission.CANCEL_RUN, kind=Kind.RUN, response=CancelledOut)
def cancel_many(request: ApiRequest, body: CancelManyIn) -> dict[str, int]:
    """Cancel up to 1,000 runs by one command, answered at once and carried out behind it. Runs of others need the right to the queue and a
    reason."""
    done = cancel_runs(actor=request.actor, rights=request.rights, runs=[key_of(run) for run in body.run_ids], reason=body.reason)
    return {"waiting": done.waiting, "working": done.working, "left": done.left}


@routes.get("/runs/{run}", needs=Permission.VIEW, kind=Kind.RUN, response=RunOut)
def get_run(request: ApiRequest, run: str) -> dict[str, Any]:
    """One run, with what it is frozen as."""
    return shape(request, find_run(run))


@routes.post("/runs/{run}/cancel", needs=Permission.CANCEL_RUN, kind=Kind.RUN, response=RunOut)
def cancel(request: ApiRequest, run: str, body: ReasonIn | None = None) -> dict[str, Any]:
    """Cancel: at once while it waits, `cancelling` until its processes have ended while it runs. Another person's run needs a reason."""
    found = find_run(run)
    cancel_run(actor=request.actor, run=found, reason=body.reason if body else "")
    return shape(request, find_run(run))


@routes.post("/runs/{run}/declare-lost", needs=Permission.MANAGE_QUEUE, kind=Kind.RUN, response=RunOut)
def declare_run_lost(request: ApiRequest, run: str, body: ReasonIn) -> dict[str, Any]:
    """Give up a run whose pool has been silent about it for a minute: it ends as `lost`, or `cancelled` where that was asked for."""
    declare_lost(actor=request.actor, run=find_run(run), reason=body.reason)
    return shape(request, find_run(run))


@routes.post("/runs/{run}/retry", needs=Permission.LAUNCH_RUN, kind=Kind.RUN, response=RunOut, status=201)
def retry(request: ApiRequest, run: str) -> Status[dict[str, Any]]:
    """Ask for the same again, as a new run."""
    return Status(201, shape(request, retry_run(actor=request.actor, run=find_run(run), run_id=request.chosen_id).run))


@routes.get("/runs/{run}/logs", needs=Permission.VIEW, kind=Kind.RUN, response=LogOut)
def get_log(request: ApiRequest, run: str, name: Text = "stdout.log", offset: Offset = 0, limit: Piece = 65_536) -> dict[str, Any]:
    """A piece of a log by byte offset, cut between characters; bytes that are not UTF-8 come as U+FFFD. Ask again from `next_offset` until
    `is_final`."""
    piece = read_log(Run.objects.find(run), name, offset=offset, limit=limit)
    text, used = whole_characters(piece.text_bytes)
    return {
        "text": text,
        "offset": piece.offset,
        "next_offset": piece.offset + used,
        "is_final": piece.is_final,
    }


@certificates.get("/certificates/{certificate}", needs=Permission.VIEW, kind=Kind.RUN, response=CertificateOut)
def get_certificate(request: ApiRequest, certificate: str) -> dict[str, Any]:
    """An admission decision with its arithmetic, admitted or refused."""
    found = Certificate.objects.find(certificate)
    return {
        "id": found.public_id, "uuid": str(found.pk), "verdict": found.verdict, "lines": found.lines, "request": found.request,
        "created_at": found.created_at,
    }  # fmt: skip


def launch_request(body: LaunchIn) -> LaunchRequest:
    return LaunchRequest(
        benchmark=body.benchmark_id,
        agent=body.agent_id,
        agent_version=body.agent_version,
        pool=body.compute_pool_id,
        datasets=tuple(body.dataset_ids),
        artifacts=tuple(body.artifact_ids),
        parameters=body.parameters,
        seed=body.seed,
        gpu_ms=_exact(body.budget.gpu_hours, MS_PER_HOUR, "budget.gpu_hours"),
        api_micros=_exact(body.budget.api_spend, 1_000_000, "budget.api_spend") or 0,
        name=body.name,
        reason=body.reason,
        priority=body.priority,
    )


def _exact(amount: Decimal | None, per_unit: int, field: str) -> int | None:
    """An amount in integers; Refusal where it is finer than the smallest unit, rather than rounding what somebody asked for."""
    if amount is None:
        return None
    whole = amount * per_unit
    if whole != whole.to_integral_value():
        raise Refusal(f"{amount} is finer than labsite counts; the smallest step is 1/{per_unit:,}.", field=field)
    return int(whole)
