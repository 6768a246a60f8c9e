"""One row in every table of a workspace, written by the owner of the database around all commands, so that a wall has something to hide."""

import secrets
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from django.apps import apps
from django.contrib.postgres.fields import ArrayField
from django.db import models

from labsite.owner import as_owner
from tests.factories import make_user
from workspaces import scope, store
from workspaces.models import Blob, Engine, Row, User, Workspace

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)

ENVELOPE = {"payload": "e30=", "payloadType": "application/vnd.in-toto+json", "signatures": [{"keyid": "0", "sig": ""}]}

# What check constraints demand; everything else is made up from the column's type.
DEMANDED: dict[str, dict[str, Any]] = {
    "workspaces.ShareGrant": {"is_public": True, "object_type": "benchmark", "expires_at": None},
    "workspaces.ExternalSpend": {"amount_micros": 1, "currency": "EUR", "corrects": None},
    "workspaces.Contract": {"runs_per_person": None, "period": ""},
    "workspaces.Membership": {"role": "viewer"},
    "workspaces.Invitation": {"role": "viewer"},
    "workspaces.Approval": {"status": "pending", "content": {"asks": "Launch a run", "limits": {}, "pool": {"slug": "local"}}},
    "workspaces.Delegation": {"starts_at": NOW, "ends_at": NOW + timedelta(days=1)},
    "workspaces.ApprovalRule": {"approvers": 1, "role": "approver", "hours": 1},
    "runs.Run": {
        "status": "queued",
        "frozen": {
            "pool": {"slug": "local", "isolation": "none", "price_micros_per_gpu_hour": 0, "currency": "EUR"},
            "limits": {"wall_seconds": 1, "gpu_ms": 0, "api_micros": 0},
            "inputs": [],
        },
    },
    "runs.Sweep": {"space": {"kind": "grid", "axes": {"rate": [1, 2]}}, "members": 2},
    "runs.Export": {"status": "ready", "began_at": NOW, "ended_at": NOW, "bytes": 1},
    "runs.Promotion": {"status": "promoted", "name": "1", "facts": [], "decided_at": NOW, "statement": ENVELOPE},
    "runs.OverlapCheck": {"method": 1, "verdict": "clean", "pairs": []},
    "runs.RecordIndex": {"method": 1},
    "runs.Ruling": {"about": "verdict", "verdict": "clean"},
    "runs.Evaluation": {"samples_read": {"path": "x", "counts": {}, "scored": 0, "mean": None, "fault_count": 0, "faults": []}},
    "runs.MemoryEntry": {"trust": "unreviewed", "superseded_at": None},
    "runs.MemoryEvidence": {"evaluation": None, "artifact": None, "dataset_version": None},
    "runs.Decision": {"checks": [], "candidates": [], "facts": {}},
    "runs.Certificate": {"lines": [], "facts": {}, "request": {}},
}


def owned_models() -> list[type[Row]]:
    """Every model with a workspace, of both floors."""
    return sorted((model for model in apps.get_models() if issubclass(model, Row)), key=lambda model: model._meta.label)


def fill(workspace: Workspace) -> dict[str, Row]:
    """A row of every owned model in the workspace; by label. Writes as the owner, outside all commands."""
    person = make_user(f"row-{secrets.token_hex(6)}")
    made: dict[str, Row] = {}
    with as_owner(), scope.open_workspace(workspace.pk):
        for model in owned_models():
            _make(model, made, person)
    return made


def _make(model: type[Row], made: dict[str, Row], person: Any) -> Row:
    label = model._meta.label
    if label in made:
        return made[label]
    existing = model.objects.first()
    if existing is not None:
        made[label] = existing
        return existing
    demanded = DEMANDED.get(label, {}) | (_stored() if model is Blob else {})
    values: dict[str, Any] = {}
    for field in model._meta.concrete_fields:
        if field.name in ("id", "workspace", "created_at") or field.name in demanded:
            continue
        values[field.name] = _value(field, label, made, person)
    row = model(**values, **demanded)
    row.save_base(raw=True, force_insert=True)
    made[label] = row
    return row


def _stored() -> dict[str, Any]:
    """A file that really lies in the store, so that pages can show it."""
    sha256, count = store.put_stream("local", scope.current_id(), [b"a row's file\n"])
    return {"region": "local", "sha256": sha256, "bytes": count}


def _value(field: "models.Field[Any, Any]", label: str, made: dict[str, Row], person: Any) -> Any:
    if isinstance(field, models.ForeignKey):
        return _parent(field, label, made, person)
    if field.null:
        return None
    if field.choices:
        return next(value for value, _ in field.flatchoices)
    if isinstance(field, models.JSONField) and field.has_default():
        return field.get_default()
    for kind, make in MADE_UP.items():
        if isinstance(field, kind):
            return make(field)
    raise TypeError(f"{label}.{field.name}: say in rows.py how a {type(field).__name__} is made up")


def _parent(field: "models.ForeignKey[Any, Any]", label: str, made: dict[str, Row], person: Any) -> Any:
    target = field.related_model
    assert isinstance(target, type)
    if issubclass(target, Row):
        return None if target._meta.label == label else _make(target, made, person)
    if issubclass(target, User):
        return person
    if issubclass(target, Engine):
        return Engine.objects.create(slug=f"engine-{secrets.token_hex(4)}", kind="local", slots=1)
    return None


MADE_UP: "dict[type[models.Field[Any, Any]], Callable[[models.Field[Any, Any]], Any]]" = {
    ArrayField: lambda field: [],
    models.UUIDField: lambda field: uuid.uuid4(),
    models.BooleanField: lambda field: False,
    models.DateTimeField: lambda field: NOW + timedelta(days=field.name.startswith("end")),
    models.IntegerField: lambda field: 1,
    models.FloatField: lambda field: 1,
    models.DecimalField: lambda field: 1,
    models.JSONField: lambda field: {},
    models.CharField: lambda field: secrets.token_hex(32)[: min(64, field.max_length or 64)],
    models.TextField: lambda field: secrets.token_hex(32),
}
