"""What an approver agrees to, in words with units: the content of a request as facts, its parameters beside the agent's own, its cost. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from workspaces import units

NOWHERE: dict[str, tuple[str, str]] = {}
LONGEST = 1000  # characters of a value
SAID = (
    "asks",
    "choices",
    "changes",
    "document",
    "version",
    "certificate",
    "facts",
    "gate",
    "decision",
    "simulation",
    "parameters",
    "limits",
    "benchmark",
    "agent",
    "inputs",
    "seed",
    "pool",
)


@dataclass(frozen=True, slots=True)
class Fact:
    """`page` and `slug` name where it is told in full; empty where there is no such page."""

    label: str
    value: str
    detail: str = ""
    page: str = ""
    slug: str = ""


@dataclass(frozen=True, slots=True)
class Parameter:
    """`default` is what the agent would use by itself; empty where it has none."""

    name: str
    value: str
    default: str
    is_changed: bool


def cost_micros(content: dict[str, Any]) -> int | None:
    """What all that is asked for would cost, in millionths of `pool.currency`, rounded up; None where nothing says so."""
    limits, pool = _object(content, "limits"), _object(content, "pool")
    gpu_ms, price = limits.get("gpu_ms"), pool.get("price_micros_per_gpu_hour")
    if not isinstance(gpu_ms, int) or not isinstance(price, int):
        return None
    return -(-gpu_ms * price // units.MS_PER_HOUR) + int(limits.get("api_micros") or 0)


def cost_words(content: Any) -> str:
    """`2.40 EUR`; empty where nothing says what it costs."""
    cost = cost_micros(content) if isinstance(content, dict) else None
    return "" if cost is None else units.money(cost, str(_object(content, "pool").get("currency", "")))


def facts_of(
    content: dict[str, Any], isolation: dict[str, str], subject: str = "", pages: Mapping[str, tuple[str, str]] = NOWHERE
) -> list[Fact]:
    """Everything of the content but what a page draws by itself. `isolation`: the words of each way to keep attempts apart; `subject`: the kind of
    what is asked about, which the page names first; `pages`: by key of the content, page and slug where that is told in full."""
    found = [
        *_limits(content),
        *_named(content, "benchmark", "contract", "contract version"),
        *_named(content, "agent", "version", "version"),
    ]
    for entry in content.get("inputs") or ():
        if isinstance(entry, dict):
            is_dataset = entry.get("kind") == "dataset"
            slug = _text(entry.get("slug"))
            label = _text(entry.get("label") or slug).replace("@", ", version ")
            found.append(Fact("Dataset" if is_dataset else "Input", label, page="dataset" if is_dataset else "", slug=slug))
    if content.get("seed") is not None:
        found.append(Fact("Seed", _text(content["seed"])))
    found += _pool(_object(content, "pool"), isolation)
    return found + [
        Fact(_label(key), _text(value), "", *pages.get(key, ("", "")))
        for key, value in sorted(content.items())
        if key not in (*SAID, subject) and value not in (None, "")
    ]


def parameters_of(content: dict[str, Any], schema: Any) -> list[Parameter]:
    """Each parameter beside the default of the agent's schema; those that differ come first."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    known = {name: entry for name, entry in (properties or {}).items() if isinstance(entry, dict)}
    found = []
    for name, value in _object(content, "parameters").items():
        has_default = "default" in known.get(name, {})
        default = known[name]["default"] if has_default else None
        # As words: the record keeps fractions as text.
        is_changed = not has_default or _text(value) != _text(default)
        found.append(Parameter(name, _text(value), _text(default) if has_default else "", is_changed))
    return sorted(found, key=lambda parameter: (not parameter.is_changed, parameter.name))


MOST_CHANGES = 8


def what_changed(asked: Any, now: Any, path: str = "") -> list[str]:
    """What of `asked` is another thing `now`, a sentence for each place, the first eight; named parts of a list are found by their name. Only what
    `now` holds is compared at the top, so that words about a request do not count as its content."""
    found = list(_differences(asked, now, path))
    more = len(found) - MOST_CHANGES
    return found[:MOST_CHANGES] + ([f"And {more} more."] if more > 0 else [])


def _differences(asked: Any, now: Any, path: str) -> Iterator[str]:
    asked, now = _by_name(asked), _by_name(now)
    if isinstance(asked, dict) and isinstance(now, dict):
        for key in [*now, *(key for key in asked if path and key not in now)]:
            if key == "evidence" and "verdict" in now:
                continue  # links of a check; its words name what they lead to
            yield from _differences(asked.get(key), now.get(key), f"{path}, {key}" if path else str(key))
    elif _text(asked) != _text(now):  # as words: the record keeps fractions as text
        yield f"{_label(path)[:200]}: was {_text(asked)[:80].rstrip('.')}, is {_text(now)[:80].rstrip('.')}."


def _by_name(value: Any) -> Any:
    """A list of named things as an object, so that one more of them does not make all that follow others; and other lists by their place."""
    if not isinstance(value, list) or not value or not all(isinstance(entry, dict) for entry in value):
        return value
    return {str(entry.get("name") or entry.get("slug") or f"the {place}."): entry for place, entry in enumerate(value, 1)}


def _limits(content: dict[str, Any]) -> list[Fact]:
    limits, pool = _object(content, "limits"), _object(content, "pool")
    gpu_ms, price, currency = limits.get("gpu_ms"), pool.get("price_micros_per_gpu_hour"), str(pool.get("currency", ""))
    found = []
    if isinstance(gpu_ms, int):
        found.append(Fact("Reserves, at most", units.gpu_time(gpu_ms)))
    if isinstance(gpu_ms, int) and isinstance(price, int):
        parts = f"{units.gpu_time(gpu_ms)} at {units.money(price, currency)} an hour"
        api = int(limits.get("api_micros") or 0)
        found.append(Fact("Costs, at most", cost_words(content), parts + (f", and {units.money(api, currency)} for APIs" if api else "")))
    elif limits.get("api_micros"):
        found.append(Fact("API spend, at most", units.money(int(limits["api_micros"]))))
    if isinstance(limits.get("wall_seconds"), int):
        found.append(Fact("Ends at the latest after", units.duration(limits["wall_seconds"])))
    return found


def _named(content: dict[str, Any], noun: str, key: str, words: str) -> list[Fact]:
    entry = _object(content, noun)
    if not entry.get("slug"):
        return []
    return [Fact(_label(noun), _text(entry["slug"]), f"{words} {_text(entry[key])}" if key in entry else "", noun, _text(entry["slug"]))]


def _pool(pool: dict[str, Any], isolation: dict[str, str]) -> list[Fact]:
    if not pool.get("slug"):
        return []
    parts = [isolation.get(_text(pool.get("isolation")), "")]
    if isinstance(pool.get("milli_gpu_per_slot"), int):
        parts.append(f"a slot counts as {Decimal(pool['milli_gpu_per_slot']) / 1000:f} GPU")
    return [Fact("Pool", _text(pool["slug"]), "; ".join(part for part in parts if part), "pool", _text(pool["slug"]))]


def _object(content: dict[str, Any], key: str) -> dict[str, Any]:
    found = content.get(key)
    return found if isinstance(found, dict) else {}


def _label(key: str) -> str:
    words = str(key).replace("_", " ")
    return words[:1].upper() + words[1:]


def _text(value: Any) -> str:
    """A value as people read it: `mean_texture, mean_smoothness`, `yes`, `rate: 0.1, steps: 3`."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(_text(item) for item in value)[:LONGEST] or "none"
    if isinstance(value, dict):
        return ", ".join(f"{key}: {_text(item)}" for key, item in value.items())[:LONGEST] or "none"
    return "none" if value is None else str(value)[:LONGEST]
