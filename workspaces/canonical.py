"""Values as the record holds and hashes them: canonical JSON (keys sorted, no blanks, UTF-8), times in UTC with microseconds, keys as hex."""

import hashlib
import json
import uuid
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import lru_cache
from typing import Any

from django.db import models

_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest(value: Any) -> str:
    return hashlib.sha256(canonical(value)).hexdigest()


def canonical(value: Any) -> bytes:
    return _ENCODER.encode(plain(value)).encode()


def plain(value: Any) -> Any:
    """A value as canonical JSON holds it: fractions as their shortest text, so that no parser changes them."""
    match value:
        case bool() | None | int() | str():
            return value
        case float():
            return int(value) if value.is_integer() else repr(value)  # jsonb gives 1e22 back as an integer: one number, one form
        case Decimal():
            return str(value)
        case datetime():
            return _instant(value)
        case date():
            return value.isoformat()
        case uuid.UUID():
            return value.hex
        case dict():
            return {str(key): plain(item) for key, item in value.items()}
        case list() | tuple() | set() | frozenset():
            items = [plain(item) for item in value]
            return sorted(items, key=str) if isinstance(value, set | frozenset) else items
        case models.Model():
            return plain(value.pk)
        case _:
            return str(value)


@lru_cache(maxsize=64)  # the thousands of rows that one command makes have one
def _instant(value: datetime) -> str:
    return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def read_hash(row: models.Model) -> str:
    """SHA-256 of a row as it was read, which is `workspaces.audit.row_hash` of it as long as nobody has changed it there or here."""
    return digest({field.attname: getattr(row, field.attname) for field in row._meta.concrete_fields})
