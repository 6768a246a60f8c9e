"""What an event changed, in words: before and after of each field, in the units and on the clock that people read. No queries."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from workspaces import units
from workspaces.models import AuditEvent, Unit
from workspaces.standings import amount_words
from workspaces.windows import clock_of, on_clock

YES = {"true": "yes", "false": "no"}


@dataclass(frozen=True, slots=True)
class Change:
    """One field. The exact ones are what the record holds, where the words are rounded or on another clock; else ""."""

    label: str
    before: str
    after: str
    before_exact: str = ""
    after_exact: str = ""


def changes_of(event: AuditEvent, changed: Any, zone: str) -> list[Change]:
    """Lines of an event's details: `{"pool pool_local": {field: [before, after]}}`. The first events on record name only the noun, or no row."""
    told = event.subject_type == "limit"
    unit = next((value for value, label in Unit.choices if told and event.subject_label.startswith(str(label))), "")
    clock = clock_of(zone)
    rows = {name: value for name, value in changed.items() if isinstance(value, dict)} if isinstance(changed, dict) else {}
    nouns = Counter(name.partition(" ")[0] for name in rows)
    lines = [line for name, fields in rows.items() for line in _lines(fields, _prefix(name, nouns), unit, clock)]
    return lines if rows else list(_lines(changed, "", unit, clock))


def in_line(event: AuditEvent, details: Any, zone: str) -> list[str]:
    """What the row that the event is about became, for the end of a sentence: `amount 1,000 → 1,200 GPU-hours`."""
    changed = details.get("changed") if isinstance(details, dict) else None
    if isinstance(changed, dict):
        own = {name: fields for name, fields in changed.items() if name.partition(" ")[0] == event.subject_type}
        changed = own or changed
    found = []
    for change in changes_of(event, changed, zone):
        before, after = (YES.get(words, words)[:40] for words in (change.before, change.after))
        if after:
            found.append(f"{change.label} {before} → {after}" if before else f"{change.label} {after}")
    return found


def _prefix(name: str, nouns: Counter[str]) -> str:
    """`pool: `, and with its id where several pools changed. Nothing needs to be said where one row changed alone."""
    noun, _, key = name.partition(" ")
    if nouns.total() == 1:
        return ""
    return f"{noun.replace('_', ' ')}{f' {key}' if nouns[noun] > 1 and key else ''}: "


def _lines(fields: Any, prefix: str, unit: str, clock: ZoneInfo) -> Iterator[Change]:
    for name, value in fields.items() if isinstance(fields, dict) else ():
        label = f"{prefix}{_label(name)}"
        if isinstance(value, list) and len(value) == 2:
            before, after = (_words(name, side, unit, clock) for side in value)
            yield Change(label, before, after, *(_exact(side, words) for side, words in zip(value, (before, after), strict=True)))


def _label(name: str) -> str:
    """`spent_gpu_ms` → `spent GPU time`: the unit stands with the amount."""
    for end, words in (("gpu_ms", "GPU time"), ("cpu_ms", "CPU time"), ("api_micros", "API spend")):
        if name.endswith(end):
            name = name.removesuffix(end) + words
    return name.removesuffix("_seconds").removesuffix("_bytes").removesuffix("_at").replace("_", " ")


def _words(name: str, value: Any, unit: str, clock: ZoneInfo) -> str:
    if value is None or value == "":
        return ""
    if isinstance(value, int) and not isinstance(value, bool):
        if name == "amount" and unit:
            return amount_words(value, unit)
        if name.endswith("gpu_ms"):
            return units.gpu_time(value)
        if name.endswith("cpu_ms"):
            return units.duration(value / 1000)
        if name.endswith("bytes"):
            return units.size(value)
        if name.endswith("_micros"):
            return units.money(value)
        if name.endswith("_seconds"):
            return units.duration(value)
    if isinstance(value, str):
        moment = _moment(value) if name.endswith("_at") else None
        if moment is not None:
            local = on_clock(moment, clock)
            return f"{local.day} {local:%B %Y, %H:%M:%S} {clock.key}"
        return value.replace("_", " ") if name == "status" else value
    return json.dumps(value, ensure_ascii=False)


def _exact(value: Any, words: str) -> str:
    """The value as it is kept, where the words say it otherwise."""
    if value is None or value == words or words == "":
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return "" if text == words else text


def _moment(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else None
