"""Keyset pages: lists that stay fast and steady while rows are added. A cursor is a place in the order, never a permission."""

import base64
import binascii
import json
import uuid
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeVar

from django.db import models
from django.db.models import Q

Item = TypeVar("Item")
M = TypeVar("M", bound=models.Model)


class BadCursor(ValueError):
    """The cursor was not given out by labsite."""


@dataclass(frozen=True, slots=True)
class Page(Generic[Item]):
    items: list[Item]
    next: str | None = None


def newest_first(rows: "models.QuerySet[M]", *, cursor: str = "", size: int = 50) -> Page[M]:
    """Rows by `created_at`, newest first, ties by id; `cursor` continues after the last row seen."""
    if cursor:
        created_at, pk = _read(cursor)
        rows = rows.filter(Q(created_at__lt=created_at) | Q(created_at=created_at, pk__lt=pk))
    found = list(rows.order_by("-created_at", "-pk")[: size + 1])
    more = len(found) > size
    items = found[:size]
    return Page(items=items, next=_spell(items[-1]) if more else None)


def _spell(row: models.Model) -> str:
    created_at: datetime = getattr(row, "created_at")
    return base64.urlsafe_b64encode(json.dumps([created_at.isoformat(), row.pk.hex]).encode()).decode().rstrip("=")


def _read(cursor: str) -> tuple[datetime, uuid.UUID]:
    try:
        created_at, pk = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        moment = datetime.fromisoformat(created_at)
        if moment.tzinfo is None:
            raise ValueError("no zone")
        return moment, uuid.UUID(pk)
    except (ValueError, TypeError, AttributeError, binascii.Error) as error:
        raise BadCursor("This cursor was not given out by labsite; begin again without one.") from error
