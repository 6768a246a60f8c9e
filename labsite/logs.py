"""What the log must not hold: secrets that stand in addresses, because a link is how a person gets them; traces of what strangers send."""

import logging
import re
from collections.abc import MutableMapping
from typing import Any

SECRET_IN_PATH = re.compile(r"(/invitations/[^/\s]+/|/password/reset/key/)[^/\s\"']+")


def without_secrets(logger: Any, method: str, line: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """A structlog processor: writes `…` for the secret part of an invitation's or a password reset's address."""
    for key, value in line.items():
        if isinstance(value, str):
            line[key] = SECRET_IN_PATH.sub(r"\1…", value)
        elif value is not None and not isinstance(value, bool | int | float):
            line[key] = SECRET_IN_PATH.sub(r"\1…", repr(value))
    return line


class RequestTraces(logging.Filter):
    """A request that cannot be read is its sender's fault, one line without a trace: a trace in the log is a fault of labsite."""

    def filter(self, record: logging.LogRecord) -> bool:
        if record.name.startswith("django.security.") or getattr(record, "status_code", None) == 400:
            record.exc_info = None
            record.levelno, record.levelname = logging.WARNING, "WARNING"
        return True
