"""Lines that a run has written and that were not taken in: how many of each file, and of the first of them number and reason."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from runs.models import Attempt, Watch
from workspaces import kept_query

FILES = ("metrics", "events", "samples")


@dataclass(frozen=True, slots=True)
class BadLine:
    """`number` is None for what is said of the file, such as that the rest of it is too long to be read."""

    number: int | None
    reason: str


@dataclass(frozen=True, slots=True)
class BadFile:
    """Of one file of one attempt: `count` lines are bad, the `first` of them and what else is to be said of the file are named."""

    attempt: int
    name: str
    count: int
    first: tuple[BadLine, ...]


def bad_lines_question(run: Any) -> kept_query.Question:
    """What `bad_files` reads, for one who asks for more in the same round trip."""
    return kept_query.Question(_watches, (), {"run": run})


def bad_lines_of(run: Any) -> list[BadFile]:
    """By attempt and file; nothing of those whose lines were all taken in."""
    return bad_files(kept_query.ask(_watches, run=run))


def bad_files(watches: Iterable[Watch]) -> list[BadFile]:
    found = []
    for watch in watches:
        for name in FILES:
            first = tuple(BadLine(line["number"], line["reason"]) for line in watch.bad_lines if line["file"] == name)
            count = getattr(watch, f"{name}_bad")
            if first or count:
                found.append(BadFile(watch.attempt.number, f"{name}.jsonl", count, first))
    return found


def count_of(files: Iterable[BadFile]) -> int:
    """Bad lines of all files together; what is said of a file as a whole counts as none."""
    return sum(file.count for file in files)


def _watches(run: Any) -> "QuerySet[Watch]":
    attempts = Attempt.objects.filter(run=run)
    rows = Watch.objects.filter(attempt__in=attempts).exclude(bad_lines=[]).select_related("attempt")
    return rows.only(*(f"{name}_bad" for name in FILES), "bad_lines", "attempt__number").order_by("attempt__number")
