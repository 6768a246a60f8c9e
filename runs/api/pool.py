"""What runs know of a pool: whether it takes work, when it last answered and what is used of it; and one visit to its engine."""

from datetime import datetime
from typing import Any

from ninja import Schema
from pydantic import Field

from runs.commands.stranger import end_stranger
from runs.contact import end_there, visit
from runs.pools.base import PoolError
from runs.queries.pool import pool_state
from runs.queries.utilisation import pool_uses
from workspaces.access import Kind, Permission
from workspaces.api.door import ApiRequest, Routes
from workspaces.api.registry_shapes import Body, Line
from workspaces.models import Pool

routes = Routes("pools")


class StrangerOut(Schema):
    """Work that a pool lists under labsite's name and no run explains. Nothing ends it by itself."""

    key: str
    since: datetime = Field(description="When it was first seen.")
    is_ours: bool = Field(description="It bears the name of this installation, not of another or of one that a copy was made of.")


class PoolStateOut(Schema):
    """What nobody has measured is null, never 0."""

    pool_id: str
    takes_work: bool = Field(description="It is open, and its newest word is not that it does not answer.")
    slots: int
    taken: int = Field(description="Of the slots, by this workspace.")
    free: int = Field(description="Slots that a run could take now, as far as the engine has room too.")
    engine_slots: int
    engine_taken: int = Field(description="Of the engine's slots, by all workspaces.")
    waiting: int
    silent: int = Field(description="Runs of which the last look brought no answer.")
    answers: bool | None = Field(description="By the newest word; null where nobody has asked it yet.")
    last_contact_at: datetime | None = Field(description="When it last answered.")
    failed_at: datetime | None = Field(description="When it last did not.")
    failure: str = Field(description="Why it did not; empty where it answers.")
    strangers: list[StrangerOut] = Field(description="Work there that labsite knows nothing of; at most 100.")
    stranger_count: int
    running: int
    measured: int = Field(description="Of the running, those with samples; the figures below are of these.")
    cpu_cores: float | None
    memory_bytes: int | None
    gpu_percent: float | None = Field(description="Mean over `gpus`, whoever uses them.")
    gpus: int


class StrangerIn(Body):
    key: Line = Field(min_length=1, max_length=128)
    reason: Line = Field(min_length=1, max_length=1000)


class ToldOut(Schema):
    """`words` say why the pool was not told; ask again then."""

    pool_id: str
    key: str
    is_told: bool
    words: str


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
        "answers": not state.contact.is_silent if state.contact.is_asked else None,
        "last_contact_at": state.contact.answered_at,
        "failed_at": state.contact.failed_at,
        "failure": state.contact.reason if state.contact.is_silent else "",
        "strangers": [{"key": one.key, "since": one.since, "is_ours": one.is_ours} for one in state.strangers],
        "stranger_count": state.stranger_count,
        "running": use.running,
        "measured": use.measured,
        "cpu_cores": use.cores,
        "memory_bytes": use.memory_bytes,
        "gpu_percent": use.gpu_percent,
        "gpus": use.gpus,
    }


@routes.post("/pools/{pool}/test", needs=Permission.MANAGE_POOL, kind=Kind.POOL, response=VisitOut)
def test_connection(request: ApiRequest, pool: str) -> dict[str, Any]:
    """Go to the pool's engine once, and say what it is and what stood in the way. Whether it answered is kept."""
    found = Pool.objects.find(pool, "engine")
    try:
        seen = visit(found)
    except PoolError as error:
        return {"pool_id": found.public_id, "is_reachable": False, "words": error.reason, "warnings": []}
    return {"pool_id": found.public_id, "is_reachable": True, "words": seen.words, "warnings": list(seen.warnings)}


@routes.post("/pools/{pool}/end-unknown", needs=Permission.MANAGE_POOL, kind=Kind.POOL, response=ToldOut)
def end_unknown(request: ApiRequest, pool: str, body: StrangerIn) -> dict[str, Any]:
    """End one of the pool's `strangers` that bears this installation's name. Nothing ends them by itself."""
    found = Pool.objects.find(pool, "engine")
    key = end_stranger(actor=request.actor, pool=found, key=body.key, reason=body.reason)
    try:
        end_there(found, key)
    except PoolError as error:
        return {"pool_id": found.public_id, "key": key, "is_told": False, "words": error.reason}
    return {"pool_id": found.public_id, "key": key, "is_told": True, "words": ""}
