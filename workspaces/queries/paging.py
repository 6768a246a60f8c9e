"""Keyset pages: lists that stay fast and steady while rows are added. A cursor is a place in the order, never a permission."""

import base64
import binascii
import json
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Generic, TypeVar

from django.db import models
from django.db.models import Q

Item = TypeVar("Item")
M = TypeVar("M", bound=models.Model)
Place = tuple[str | int | float | bool, ...]


NOT_OURS = "This cursor was not given out by labsite; begin again without one."


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


def in_order(rows: Iterable[Item], place: Callable[[Item], Place], *, cursor: str = "", size: int = 50) -> Page[Item]:
    """Rows that are all at hand, by their `place`, which no two share; `cursor` continues after the place of the last row seen, whether that
    row is still there or not."""
    found = sorted(rows, key=place)
    if cursor:
        after = read_place(cursor)
        try:
            found = [row for row in found if place(row) > after]
        except TypeError as error:  # a cursor of another list
            raise BadCursor(NOT_OURS) from error
    return cut(found, place, size=size)


def cut(found: list[Item], place: Callable[[Item], Place], *, size: int) -> Page[Item]:
    """The page of rows that were asked for from its beginning on, one more than it has where there are more."""
    items = found[:size]
    return Page(items=items, next=_write(list(place(items[-1]))) if len(found) > size else None)


def _write(value: list[object]) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


def _decode(cursor: str) -> object:
    try:
        return json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (ValueError, RecursionError, binascii.Error) as error:
        raise BadCursor(NOT_OURS) from error


def read_place(cursor: str) -> Place:
    """The place after which a page goes on. Raises BadCursor."""
    found = _decode(cursor)
    if not isinstance(found, list) or not found or not all(isinstance(part, str | int | float) for part in found):
        raise BadCursor(NOT_OURS)
    return tuple(found)


def _spell(row: models.Model) -> str:
    created_at: datetime = getattr(row, "created_at")
    return _write([created_at.isoformat(), row.pk.hex])


def _read(cursor: str) -> tuple[datetime, uuid.UUID]:
    try:
        created_at, pk = read_place(cursor)
        moment = datetime.fromisoformat(str(created_at))
        if moment.tzinfo is None:
            raise ValueError("no zone")
        return moment.astimezone(UTC), uuid.UUID(str(pk))
    except (ValueError, TypeError, AttributeError, OverflowError) as error:
        raise BadCursor(NOT_OURS) from error
