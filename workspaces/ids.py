"""Names of things: UUIDv7 keys (RFC 9562), slugs, and the canonical id `<prefix>_<slug or 32 hex digits>`."""

import re
import uuid
from datetime import datetime

from django.core.exceptions import ValidationError
from uuid_utils.compat import uuid7 as _uuid7

SLUG_PATTERN = re.compile(r"[a-z0-9](?:[a-z0-9_-]{0,62}[a-z0-9])?")
HEX_PATTERN = re.compile(r"[0-9a-f]{32}")
RESERVED_SLUGS = frozenset(
    (
        *("new", "launch", "edit", "cancel", "retry", "approve", "refuse", "archive", "restore", "export", "import", "delete", "withdraw"),
        *(
            "promote",
            "share",
            "revoke",
            "rotate",
            "freeze",
            "upload",
            "download",
            "estimate",
            "compare",
            "metrics",
            "logs",
            "events",
            "csv",
        ),
        *("api", "static", "console", "accounts", "mlflow"),
    )
)


def uuid7() -> uuid.UUID:
    """A fresh UUIDv7. Migrations name this function for ever."""
    return _uuid7()


def first_at(moment: datetime) -> uuid.UUID:
    """The smallest UUIDv7 of a moment: rows whose key is no smaller were made at that moment or later."""
    return uuid.UUID(int=int(moment.timestamp() * 1000) << 80)


def validate_slug(value: str) -> None:
    """Lower-case letters, digits, `-` and `_`, 1 to 64 characters, none that could be mistaken for an id or an address."""
    if not SLUG_PATTERN.fullmatch(value):
        raise ValidationError("Use 1 to 64 lower-case letters, digits, - or _, beginning and ending with a letter or digit.")
    if value in RESERVED_SLUGS or HEX_PATTERN.fullmatch(value):
        raise ValidationError("This name is reserved.")


def same_name(slug: str) -> str:
    """The form in which two slugs are compared: `-` and `_` are one character for look-ups (decision 7)."""
    return slug.replace("_", "-")


def canonical(prefix: str, slug: str | None, pk: uuid.UUID) -> str:
    """`bench_go_fast_learning`-style public id, or `run_<32 hex>` where the thing has no slug."""
    return f"{prefix}_{slug or pk.hex}"


def as_uuid(text: str) -> uuid.UUID | None:
    """The UUID that `text` spells, with or without hyphens, or None."""
    if len(text) not in (32, 36):
        return None
    try:
        return uuid.UUID(text)
    except ValueError:
        return None


def spellings(prefix: str, text: str) -> tuple[uuid.UUID | None, tuple[str, ...]]:
    """What `text` may mean: a key, or slugs in the order to try (canonical id first, then the bare slug)."""
    bare = text.removeprefix(f"{prefix}_")
    pk = as_uuid(bare) or as_uuid(text)
    return pk, tuple(dict.fromkeys((same_name(bare), same_name(text))))
