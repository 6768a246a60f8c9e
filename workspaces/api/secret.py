"""`/secrets`: what runs read. Values come in and never go out: no answer has one, sealed or not."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from django.urls import reverse
from ninja import Schema, Status
from pydantic import Field

from workspaces.access import Kind, Permission
from workspaces.api.door import ApiRequest, Routes
from workspaces.api.registry_shapes import Body, Cursor, Line, Size, made_before
from workspaces.commands.secret import MAX_DAYS, UNCHANGED, change_secret, create_secret, revoke_secret, rotate_secret
from workspaces.models import Agent, Benchmark, Pool, Secret
from workspaces.queries.secret import SecretRow, UseRow, find_secret, page_of_secrets, row_of, use_rows
from workspaces.secret_value import MOST_BYTES

routes = Routes("secrets")

Names = list[Annotated[Line, Field(max_length=200)]]
Value = Annotated[str, Field(max_length=MOST_BYTES, description="8 characters to 64 KiB of text; in no answer, log or event.")]
Days = Annotated[int, Field(ge=1, le=MAX_DAYS, strict=True)]


class SecretIn(Body):
    name: Line = Field(max_length=64, description="Capitals, digits and _, such as HF_TOKEN.")
    value: Value
    kind: Literal["value", "ssh_key"] = "value"
    description: Line = Field("", max_length=1000)
    agents: Names = Field(default_factory=list, max_length=500, description="Agents that may read it; none: no run reads it.")
    pools: Names = Field(default_factory=list, max_length=500, description="Pools on which it is read; none: no run reads it.")
    benchmarks: Names = Field(default_factory=list, max_length=500, description="Benchmarks for which it is read; none: for every one.")
    rotate_after_days: Days | None = None


class SecretChange(Body):
    description: Line | None = Field(None, max_length=1000)
    agents: Names | None = Field(None, max_length=500)
    pools: Names | None = Field(None, max_length=500)
    benchmarks: Names | None = Field(None, max_length=500)
    rotate_after_days: Days | None = Field(None, description="Null: never due; left out: as it was.")
    reason: Line = Field("", max_length=1000)


class RotateIn(Body):
    value: Value
    reason: Line = Field("", max_length=1000)


class RevokeIn(Body):
    reason: Line = Field(min_length=1, max_length=1000)


class SecretOut(Schema):
    id: str
    uuid: UUID
    status: str = Field(description="ready, due (for another value) or revoked.")
    name: str
    kind: str
    description: str
    version: int
    fingerprint: str = Field(description="Equal for equal values in this workspace; it tells nothing about them.")
    public_key: str
    agents: list[str]
    pools: list[str]
    benchmarks: list[str]
    rotate_after_days: int | None
    rotated_at: datetime
    rotation_due_at: datetime | None
    revoked_at: datetime | None
    used_at: datetime | None
    created_at: datetime
    url: str


class SecretList(Schema):
    items: list[SecretOut]
    next: str | None


class UseOut(Schema):
    run: str
    run_name: str
    agent: str
    agent_version: int
    version: int = Field(description="Of the secret's values.")
    used_at: datetime
    url: str


class UseList(Schema):
    items: list[UseOut]
    next: str | None


@routes.get("/secrets", needs=Permission.VIEW, kind=Kind.SECRET, response=SecretList)
def list_secrets(request: ApiRequest, cursor: Cursor = "", limit: Size = 50) -> Any:
    """Secrets, newest first, revoked ones among them."""
    page = page_of_secrets(cursor=cursor, size=limit)
    return {"items": [_out(request, row) for row in page.items], "next": page.next}


@routes.post("/secrets", needs=Permission.MANAGE_SECRET, kind=Kind.SECRET, response=SecretOut, status=201)
def post_secret(request: ApiRequest, body: SecretIn) -> Any:
    """Keep a value under a name."""
    given = body.dict(exclude={"agents", "pools", "benchmarks"})
    secret = made_before(request, Secret) or create_secret(actor=request.actor, id=request.chosen_id, **given, **_lists(body))
    return Status(201, _out(request, row_of(secret)))


@routes.get("/secrets/{secret}", needs=Permission.VIEW, kind=Kind.SECRET, response=SecretOut)
def get_secret(request: ApiRequest, secret: str) -> Any:
    """One secret, by id or name."""
    return _out(request, row_of(find_secret(secret)))


@routes.patch("/secrets/{secret}", needs=Permission.MANAGE_SECRET, kind=Kind.SECRET, response=SecretOut)
def patch_secret(request: ApiRequest, secret: str, body: SecretChange) -> Any:
    """Change what it is for, who may read it, when another value is due; what is not named stays."""
    days = body.rotate_after_days if "rotate_after_days" in body.model_fields_set else UNCHANGED
    found = change_secret(
        actor=request.actor, secret=find_secret(secret), description=body.description, rotate_after_days=days, reason=body.reason, **_lists(body)
    )  # fmt: skip
    return _out(request, row_of(found))


@routes.post("/secrets/{secret}/rotate", needs=Permission.MANAGE_SECRET, kind=Kind.SECRET, response=SecretOut)
def post_rotation(request: ApiRequest, secret: str, body: RotateIn) -> Any:
    """Give it another value; the one before is destroyed."""
    found = rotate_secret(actor=request.actor, secret=find_secret(secret), value=body.value, reason=body.reason)
    return _out(request, row_of(found))


@routes.post("/secrets/{secret}/revoke", needs=Permission.MANAGE_SECRET, kind=Kind.SECRET, response=SecretOut)
def post_secret_revocation(request: ApiRequest, secret: str, body: RevokeIn) -> Any:
    """End it: its value is destroyed, no run starts with it."""
    return _out(request, row_of(revoke_secret(actor=request.actor, secret=find_secret(secret), reason=body.reason)))


@routes.get("/secrets/{secret}/uses", needs=Permission.VIEW, kind=Kind.SECRET, response=UseList)
def list_secret_uses(request: ApiRequest, secret: str, cursor: Cursor = "", limit: Size = 50) -> Any:
    """Which run got which of its values when, newest first."""
    page = use_rows(find_secret(secret), cursor=cursor, size=limit)
    return {"items": [_use(request, row) for row in page.items], "next": page.next}


def _lists(body: SecretIn | SecretChange) -> dict[str, Any]:
    """The rows that the body names; None where it leaves a list as it is. Raises NotFound."""
    return {
        "agents": [Agent.objects.find(text) for text in body.agents] if body.agents is not None else None,
        "pools": [Pool.objects.find(text) for text in body.pools] if body.pools is not None else None,
        "benchmarks": [Benchmark.objects.find(text) for text in body.benchmarks] if body.benchmarks is not None else None,
    }


def _out(request: ApiRequest, row: SecretRow) -> dict[str, Any]:
    secret = row.secret
    copied = ("name", "kind", "description", "version", "fingerprint", "public_key", "rotate_after_days", "rotated_at", "rotation_due_at")
    return {name: getattr(secret, name) for name in copied} | {
        "id": secret.public_id,
        "uuid": secret.pk,
        "status": row.status,
        "agents": row.agents,
        "pools": row.pools,
        "benchmarks": row.benchmarks,
        "revoked_at": secret.revoked_at,
        "used_at": row.used_at,
        "created_at": secret.created_at,
        "url": reverse("secret", args=[request.workspace.slug, secret.public_id]),
    }


def _use(request: ApiRequest, row: UseRow) -> dict[str, Any]:
    use = row.use
    return {
        "run": row.run_ref,
        "run_name": use.run_label,
        "agent": use.agent.slug,
        "agent_version": use.agent_version,
        "version": use.version,
        "used_at": use.created_at,
        "url": reverse("run", args=[request.workspace.slug, row.run_ref]),
    }
