"""What a run wrote down for others in `memory_write` lines of its events (docs/api.md), as entries when it ends: part of that command.

A line names its kind and gives its body as it likes. What is kept of it is unreviewed, rests on that run and on nothing else, and counts with what
the run wrote by the API.
"""

import json
import math
from collections.abc import Iterable, Sequence
from typing import Any

from runs.commands.memory import MOST_OF_A_RUN, MOST_TEXT, Said, check_configuration, check_said, content_of, entry_of
from runs.commands.memory_reading import note_reads
from runs.models import MemoryEntry, MemoryEvidence, Run, RunLine, UndeclaredInput
from runs.terminal import plain
from workspaces import ids
from workspaces.audit import Draft, Refusal
from workspaces.canonical import digest

TITLE, MOST_JSON = 200, 2_000
LONGEST_NUMBER = 25  # characters of a fraction's shortest form
SAYS = ("title", "text", "statement", "claim", "lesson", "summary", "note")  # keys under which a body usually says what it says
NOT_KEPT = "memory_not_kept"  # detail of an event: how many lines became no entry


def remember(event: Draft, run: Run, lines: Sequence[RunLine]) -> list[MemoryEntry]:
    """Entries of `lines`, those that are none counted. Nothing in a line keeps the run from ending."""
    if not lines:
        return []
    room = MOST_OF_A_RUN - MemoryEntry.objects.filter(run=run).count()
    entries = []
    for line in lines[: max(0, room)]:
        said = said_of(line.body)
        try:
            check_said(said)
        except Refusal:
            continue
        entries.append(entry_of(said, id=ids.uuid7(), author_kind=MemoryEntry.Author.RUN, author=run.requested_by, run=run))
    evidence = [MemoryEvidence(entry=entry, run=run, named=run.name[:300]) for entry in entries]
    for entry, rests_on in zip(entries, evidence, strict=True):
        entry.content_hash = digest(content_of(entry, [rests_on]))
    MemoryEntry.objects.bulk_create(entries)
    MemoryEvidence.objects.bulk_create(evidence)
    event.created(*entries, *evidence)
    if entries:
        event.details["memory_written"] = len(entries)
    if left_out := len(lines) - len(entries):
        event.details[NOT_KEPT] = left_out
    return entries


def note_said_reads(event: Draft, run: Run, undeclared: Iterable[UndeclaredInput]) -> None:
    """A receipt for each standing entry of this workspace that the run's `memory_read` lines name by its id."""
    named = [ids.spellings(MemoryEntry.prefix, one.uri)[0] for one in undeclared if one.kind == UndeclaredInput.Kind.MEMORY]
    keys = {key for key in named if key is not None}
    if keys:
        note_reads(event, list(MemoryEntry.objects.filter(pk__in=keys).order_by("pk")), run=run)


def said_of(body: dict[str, Any]) -> Said:
    """A line as an entry: a kind that memory does not know is a note that says of what kind, a body that is no text stands as JSON."""
    kind, content, evidence = str(body.get("kind") or ""), _numbers(body.get("body")), _numbers(body.get("evidence"))
    words = content if isinstance(content, str) else _sentence(content)
    is_known = kind in MemoryEntry.EntryKind.values
    title = _line(words if is_known else f"{kind}: {words}")
    parts = [words if len(words) > TITLE or "\n" in words else "", "" if isinstance(content, str) else _json(content)]
    parts += [f"Evidence, as the run gave it: {_json(evidence)}"] if evidence else []
    return Said(
        kind=kind if is_known else MemoryEntry.EntryKind.NOTE,
        collection=str(body.get("collection") or ""),
        title=title,
        text="\n\n".join(part for part in parts if part)[:MOST_TEXT],
        configuration=_configuration(content),
    )


def _sentence(content: Any) -> str:
    """The sentence of a body that has one under a usual key, else all of it as JSON."""
    if isinstance(content, dict):
        found = next((content[key] for key in SAYS if isinstance(content.get(key), str) and content[key].strip()), None)
        if found is not None:
            return str(found)
    return _json(content)


def _line(words: str) -> str:
    line = plain(" ".join(words[: 4 * TITLE].split()))
    return line if len(line) <= TITLE else f"{line[: TITLE - 1]}…"


def _json(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= MOST_JSON else f"{text[: MOST_JSON - 1]}…"


def _configuration(content: Any) -> dict[str, Any] | None:
    """The configuration of a body that names one which can be compared with others."""
    found = content.get("configuration") if isinstance(content, dict) else None
    if not isinstance(found, dict) or not found:
        return None
    try:
        check_configuration(found)
    except Refusal:
        return None
    return found


def _numbers(value: Any) -> Any:
    """Fractions in lists and objects as numbers again: they stand as text in a kept line (workspaces/canonical.py), whose depth is bounded."""
    if isinstance(value, dict):
        return {name: _numbers(_number(inner)) for name, inner in value.items()}
    return [_numbers(_number(inner)) for inner in value] if isinstance(value, list) else value


def _number(value: Any) -> Any:
    try:
        number = float(value) if isinstance(value, str) and len(value) <= LONGEST_NUMBER else None
    except ValueError:
        return value
    return number if number is not None and math.isfinite(number) and repr(number) == value else value
