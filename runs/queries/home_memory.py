"""What runs have lately written down for others to know: the `memory_write` lines of their events."""

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from runs.models import Run, RunLine
from runs.terminal import plain
from workspaces import kept_query

SHOWN = 3
NAME_LENGTH, TEXT_LENGTH = 40, 280
SAYS = ("text", "statement", "claim", "lesson", "summary", "note")  # keys under which a body usually says what it says


@dataclass(frozen=True, slots=True)
class MemoryLine:
    """One proposal, in bounded plain words: nothing of it is markup, and it is worth what the run that wrote it is worth."""

    run: Run
    collection: str
    kind: str
    text: str
    moment: datetime


def memory_lines() -> list[MemoryLine]:
    """The newest, of all runs."""
    return [_line(row) for row in kept_query.ask(_newest)]


def _newest() -> "QuerySet[RunLine]":
    rows = RunLine.objects.filter(type="memory_write").select_related("attempt__run").only("body", "created_at", "attempt__run__name")
    return rows.order_by("-pk")[:SHOWN]


def _line(row: RunLine) -> MemoryLine:
    body = row.body if isinstance(row.body, dict) else {}
    return MemoryLine(
        run=row.attempt.run,
        collection=_words(body.get("collection"), NAME_LENGTH),
        kind=_words(body.get("kind"), NAME_LENGTH),
        text=_words(_said(body.get("body")), TEXT_LENGTH),
        moment=row.created_at,
    )


def _said(body: Any) -> Any:
    """The sentence of a body that has one under a usual key, else all of it."""
    if isinstance(body, dict):
        sentence = next((body[key] for key in SAYS if isinstance(body.get(key), str) and body[key].strip()), None)
        return sentence or ", ".join(f"{key}: {_words(value, TEXT_LENGTH)}" for key, value in list(body.items())[:8])
    return body


def _words(value: Any, length: int) -> str:
    """Text on one line, cut; what is no text as short JSON; nothing as nothing."""
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    line = plain(" ".join(text[: 4 * length].split()))
    return line if len(line) <= length else f"{line[: length - 1]}…"
