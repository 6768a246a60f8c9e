"""What a policy makes of the memory it reads: which entries it goes by, which it leaves aside and why, and what they speak against. Pure.

An entry is data: its configuration is compared with the configurations that a rule would choose, its words are shown to people and never followed.
All that memory can do is to keep a configuration from being chosen, or to put one before others that the rule holds equal; limits, conditions and
gates do not ask it.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from runs.eligibility import Link
from runs.policy.check import Check, Seen, SeenWith
from runs.policy.facts import Facts
from workspaces.units import plural

# Whom a policy may go by, the least trusted first. An entry that nobody but its author has seen is never among them.
TRUSTS = ("observed", "confirmed", "durable")
LEAST = "observed"  # unless the document says more: one other person has read it and says that it was seen
# What `memory` in a document may say: the collection whose configurations are not chosen, from which trust on, and whether failed attempts, which are
# kept for people and hidden from policies (feature 69), are read for that.
PARAMETERS: dict[str, Any] = {
    "avoid": {"type": "string", "minLength": 1, "maxLength": 64},
    "least": {"enum": list(TRUSTS)},
    "failed_attempts": {"type": "boolean"},
    # The collection whose configurations go first where the rule has no reason.
    "prefer": {"type": "string", "minLength": 1, "maxLength": 64},
}
NEEDS = ("avoid",)
LARGE = 2**63

Entry = Mapping[str, Any]
Avoided = Callable[[Mapping[str, Any]], Entry | None]


@dataclass(frozen=True, slots=True)
class Reading:
    """`aside`: what is not gone by, each with the reason. `hidden` failed attempts were not read at all."""

    obeyed: tuple[Entry, ...] = ()
    aside: tuple[tuple[Entry, str], ...] = ()
    hidden: int = 0
    places: Mapping[tuple[str, ...], Mapping[tuple[object, ...], int]] = field(
        default_factory=dict
    )  # of obeyed entries, by names and values

    def against(self, parameters: Mapping[str, Any]) -> Entry | None:
        """The most trusted entry whose whole configuration is among these parameters: what a launch leaves open, no entry speaks against."""
        found = [
            known[values]
            for names, known in self.places.items()
            if all(name in parameters for name in names) and (values := tuple(_plain(parameters[name]) for name in names)) in known
        ]
        return self.obeyed[min(found)] if found else None

    def speaks_for(self, point: Mapping[str, Any]) -> Entry | None:
        """The most trusted entry that holds all of a point: an entry may say more, such as how what came of it opens its games."""
        for entry in self.obeyed:
            known = entry.get("configuration") or {}
            if point and all(name in known and _plain(known[name]) == _plain(value) for name, value in point.items()):
                return entry
        return None

    @property
    def words(self) -> str:
        """What was left aside, in a sentence; empty where nothing was."""
        kinds = Counter(why.partition(":")[0] for _, why in self.aside)
        return f"Memory left aside: {', '.join(f'{count} {why}' for why, count in kinds.most_common())}." if kinds else ""


def reading(memory: Mapping[str, Any] | None, least: str = LEAST) -> Reading:
    """What is made of the entries that the facts hold, at this least trust; of nothing where memory was not read."""
    if memory is None:
        return Reading()
    sorted_out = [(entry, why_aside(entry, least)) for entry in memory["entries"]]
    obeyed = tuple(entry for entry, why in sorted_out if not why)
    aside = tuple((entry, why) for entry, why in sorted_out if why)
    places: dict[tuple[str, ...], dict[tuple[object, ...], int]] = {}
    for place, entry in enumerate(obeyed):
        names = tuple(sorted(entry.get("configuration") or ()))
        if names:
            places.setdefault(names, {}).setdefault(tuple(_plain(entry["configuration"][name]) for name in names), place)
    return Reading(obeyed, aside, int(memory.get("hidden", 0)), places)


def why_aside(entry: Entry, least: str = LEAST) -> str:
    """Why a policy does not go by an entry, as a clause; empty where it does."""
    if entry["trust"] == "withdrawn":
        return "withdrawn"
    if entry["trust"] not in TRUSTS:
        return "unreviewed: nobody but its author vouches for it"
    if TRUSTS.index(entry["trust"]) < TRUSTS.index(least):
        return f"{entry['trust']}, and this policy goes by {least} or more"
    return f"stale: {entry['stale'][0]}".rstrip(".") if entry["stale"] else ""


def preferring(memory: Mapping[str, Any] | None, least: str = LEAST) -> Reading:
    """What is made of the entries whose configurations go first; of nothing where the document names no such collection."""
    return reading((memory or {}).get("preferred"), least)


def said_for(entry: Entry) -> str:
    """As `said_against`."""
    return f"memory speaks for it, {entry['trust']}"


def said_against(entry: Entry) -> str:
    """Why a configuration is not chosen. Not in the entry's words: who may read decisions may not be allowed to read memory."""
    return f"memory speaks against it, {entry['trust']}"


def _plain(value: object) -> object:
    """A value as it is compared: 1 and 1.0 are the same number, to nine digits; True is no number; a list or an object is like no other."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"{value:.9g}" if abs(value) < LARGE else value  # a larger whole number fits no float
    return value if isinstance(value, bool | type(None)) else ("text", value) if isinstance(value, str) else object()


# --- A check ------------------------------------------------------------------------------------------------------------------------------


def _memory_age(given: dict[str, Any], facts: Facts) -> Seen | SeenWith:
    days = given["days"]
    required = f"nothing stale or older than {days:g} days"
    if facts.memory is None:
        return None, "not read", required, "The policy reads no memory, or its facts hold none."
    read = [*facts.memory["entries"], *facts.memory.get("preferred", {}).get("entries", ())]
    trusted = [entry for entry in read if entry["trust"] in TRUSTS]
    if not trusted:
        return True, "no entry", required, "Nothing that it would go by stands in what it reads."
    now = datetime.fromisoformat(facts.at)
    old = [entry for entry in trusted if now - datetime.fromisoformat(entry["since"]) > timedelta(days=days)]
    stale = [entry for entry in trusted if entry["stale"]]
    bad = list({entry["id"]: entry for entry in (*stale, *old)}.values())
    oldest = max((now - datetime.fromisoformat(entry["since"])).days for entry in trusted)
    observed = f"{plural(len(trusted), 'entry', 'entries')}, the oldest {plural(oldest, 'day', 'days')}"
    words = f"{len(stale)} of them stale, {len(old)} too old; have them reviewed, or withdraw them." if bad else ""
    return not bad, observed, required, words, _links(bad or trusted)


def _links(entries: Sequence[Entry]) -> tuple[Link, ...]:
    return tuple(Link("memory", entry["id"], f"{entry['trust']} entry") for entry in entries[:5])


MEMORY = (
    Check(
        "memory_age",
        "Memory it reads is fresh",
        _memory_age,
        {"days": {"type": "number", "exclusiveMinimum": 0, "maximum": 36_500}},
        ("days",),
    ),
)
