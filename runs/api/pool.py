"""What runs know of a pool: whether it takes work, when it last answered and what is used of it; and one visit to its engine."""

from datetime import datetime
from typing import Any

from ninja import Schema
from pydantic import Field

from runs.place import probe_of
from runs.pools.base import PoolError
from runs.queries.pool import pool_state
from runs.queries.utilisation import pool_uses
from workspaces.access import Kind, Permission
from workspaces.api.door import ApiRequest, Routes
from workspaces.models import Pool

routes = Routes("pools")


class PoolStateOut(Schema):
    """What nobody has measured is null, never 0."""

    pool_id: str
    takes_work: bool
    slots: int
    taken: int = Field(description="Of the slots, by this workspace.")
    free: int = Field(description="Slots that a run could take now, as far as the engine has room too.")
    engine_slots: int
    engine_taken: int = Field(description="Of the engine's slots, by all workspaces.")
    waiting: int
    silent: int = Field(description="Runs of which the last look brought no answer.")
    last_contact_at: datetime | None
    running: int
    measured: int = Field(description="Of the running, those with samples; the figures below are of these.")
    cpu_cores: float | None
    memory_bytes: int | None
    gpu_percent: float | None = Field(description="Mean over `gpus`, whoever uses them.")
    gpus: int


class VisitOut(Schema):
    """`words` say what is there or, where it is not reachable, what stood in the way."""

    pool_id: str
    is_reachable: bool
    words: str
    warnings: list[str]


@routes.get("/pools/{pool}/state", needs=Permission.VIEW, kind=Kind.POOL, response=PoolStateOut)
def get_state(request: ApiRequest, pool: str) -> dict[str, Any]:
    """Can it take work, does it answer, and what is used of it?"""
    found = Pool.objects.find(pool, "engine")
    state, (use,) = pool_state(found), pool_uses([found])
    return {
        "pool_id": found.public_id,
        "takes_work": state.takes_work,
        "slots": found.slots,
        "taken": state.taken,
        "free": state.free,
        "engine_slots": state.engine.slots,
        "engine_taken": state.engine_taken,
        "waiting": state.waiting,
        "silent": state.silent,
        "last_contact_at": state.contact_at,
        "running": use.running,
        "measured": use.measured,
        "cpu_cores": use.cores,
        "memory_bytes": use.memory_bytes,
        "gpu_percent": use.gpu_percent,
        "gpus": use.gpus,
    }


@routes.post("/pools/{pool}/test", needs=Permission.MANAGE_POOL, kind=Kind.POOL, response=VisitOut)
def test_connection(request: ApiRequest, pool: str) -> dict[str, Any]:
    """Go to the pool's engine once, and say what it is and what stood in the way. Nothing of it is kept."""
    found = Pool.objects.find(pool, "engine")
    try:
        seen = probe_of(found)
    except PoolError as error:
        return {"pool_id": found.public_id, "is_reachable": False, "words": error.reason, "warnings": []}
    return {"pool_id": found.public_id, "is_reachable": True, "words": seen.words, "warnings": list(seen.warnings)}
