"""`/pools`: where runs execute; listing, binding, changing and closing."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from django.urls import reverse
from ninja import Schema, Status
from pydantic import Field

from workspaces.access import Kind, Permission
from workspaces.api.door import ApiRequest, Routes
from workspaces.api.registry_shapes import Body, Cursor, Line, Size, made_before
from workspaces.commands.pool import bind_pool, change_pool, open_pool, unbind_pool
from workspaces.models import Pool
from workspaces.queries.paging import in_order
from workspaces.queries.pool import pool_rows

routes = Routes("pools")

Slots = Annotated[int, Field(strict=True, ge=1, le=1000)]
MilliGpu = Annotated[int, Field(strict=True, ge=1, le=1_000_000, description="thousandths of a GPU that one slot counts as")]
Price = Annotated[int, Field(strict=True, ge=0, le=10**12, description="micro-units of the currency for a GPU-hour")]
IsolationName = Literal["user", "namespace", "none"]


class PoolIn(Body):
    engine: Line = Field(max_length=64)
    slug: Line = Field(max_length=64)
    slots: Slots
    isolation: IsolationName
    milli_gpu_per_slot: MilliGpu = 1000
    price_micros_per_gpu_hour: Price = 0
    currency: Line = Field("EUR", min_length=3, max_length=3)
    is_default: bool = False
    login: Line = Field("", max_length=32, description="login on the engine's host; of an engine that is reached by SSH")
    folder: Line = Field("", max_length=200, description="folder there in which runs work")
    python: Line = Field("", max_length=200, description="environment there that runs find first")
    secret: Line = Field("", max_length=64, description="name of the secret whose SSH key opens the account")
    partition: Line = Field("", max_length=64, description="of Slurm; empty for its default")
    account: Line = Field("", max_length=64, description="that Slurm charges; empty for the default of the login")
    reason: Line = Field("", max_length=1000)


class PoolChange(Body):
    slots: Slots | None = None
    isolation: IsolationName | None = None
    milli_gpu_per_slot: MilliGpu | None = None
    price_micros_per_gpu_hour: Price | None = None
    currency: Line | None = Field(None, min_length=3, max_length=3)
    is_default: bool | None = None
    is_accepting: bool | None = None
    python: Line | None = Field(None, max_length=200)
    secret: Line | None = Field(None, max_length=64)
    partition: Line | None = Field(None, max_length=64)
    account: Line | None = Field(None, max_length=64)
    reason: Line = Field("", max_length=1000)


class CloseIn(Body):
    reason: Line = Field(min_length=1, max_length=1000)


class PoolOut(Schema):
    id: str
    uuid: UUID
    status: str
    slug: str
    engine: str
    slots: int
    isolation: str
    milli_gpu_per_slot: int
    price_micros_per_gpu_hour: int
    currency: str
    is_default: bool
    address: str
    login: str
    folder: str
    python: str
    secret: str
    partition: str
    account: str
    created_at: datetime
    url: str


class PoolList(Schema):
    items: list[PoolOut]
    next: str | None


@routes.get("/pools", needs=Permission.VIEW, kind=Kind.POOL, response=PoolList)
def list_pools(request: ApiRequest, cursor: Cursor = "", limit: Size = 50) -> Any:
    """Pools, the default first, those that take no work last."""
    page = in_order(pool_rows(), lambda pool: (not pool.is_default, not pool.is_accepting, pool.slug), cursor=cursor, size=limit)
    return {"items": [_out(request, pool) for pool in page.items], "next": page.next}


@routes.post("/pools", needs=Permission.MANAGE_POOL, kind=Kind.POOL, response=PoolOut, status=201)
def post_pool(request: ApiRequest, body: PoolIn) -> Any:
    """Bind an engine of the installation as a pool."""
    pool = made_before(request, Pool) or bind_pool(actor=request.actor, id=request.chosen_id, **body.dict())
    return Status(201, _out(request, pool))


@routes.get("/pools/{pool}", needs=Permission.VIEW, kind=Kind.POOL, response=PoolOut)
def get_pool(request: ApiRequest, pool: str) -> Any:
    """One pool."""
    return _out(request, Pool.objects.find(pool, "engine", "secret"))


@routes.patch("/pools/{pool}", needs=Permission.MANAGE_POOL, kind=Kind.POOL, response=PoolOut)
def patch_pool(request: ApiRequest, pool: str, body: PoolChange) -> Any:
    """Change a pool; what is not named stays."""
    found = Pool.objects.find(pool)
    changed = {name: value for name, value in body.dict(exclude={"reason"}).items() if value is not None}
    return _out(request, change_pool(actor=request.actor, pool=found, reason=body.reason, **changed))


@routes.post("/pools/{pool}/close", needs=Permission.MANAGE_POOL, kind=Kind.POOL, response=PoolOut)
def close_pool(request: ApiRequest, pool: str, body: CloseIn) -> Any:
    """Let the pool take no new work."""
    return _out(request, unbind_pool(actor=request.actor, pool=Pool.objects.find(pool), reason=body.reason))


@routes.post("/pools/{pool}/open", needs=Permission.MANAGE_POOL, kind=Kind.POOL, response=PoolOut)
def post_open(request: ApiRequest, pool: str, body: CloseIn) -> Any:
    """Let a closed pool take new work again."""
    return _out(request, open_pool(actor=request.actor, pool=Pool.objects.find(pool), reason=body.reason))


def _out(request: ApiRequest, pool: Pool) -> dict[str, Any]:
    return {
        "id": pool.public_id,
        "uuid": pool.pk,
        "status": "ready" if pool.is_accepting and pool.engine.is_accepting else "closed",
        "slug": pool.slug,
        "engine": pool.engine.slug,
        "slots": pool.slots,
        "isolation": pool.isolation,
        "milli_gpu_per_slot": pool.milli_gpu_per_slot,
        "price_micros_per_gpu_hour": pool.price_micros_per_gpu_hour,
        "currency": pool.currency,
        "is_default": pool.is_default,
        "address": pool.engine.address,
        "login": pool.login,
        "folder": pool.folder,
        "python": pool.python,
        "secret": pool.secret.name if pool.secret else "",
        "partition": pool.partition,
        "account": pool.account,
        "created_at": pool.created_at,
        "url": reverse("pool", args=[request.workspace.slug, pool.slug]),
    }
