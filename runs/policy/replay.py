"""Asking another version about decisions that were taken: what it would have decided on the same facts. Pure.

Each decision is judged on what was true then, as the version of that time had left it: what another version would have launched, its runs would have
changed later facts, and nobody can know how.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from runs.policy.decide import Decided, Outcome, decide
from runs.policy.document import Policy
from runs.policy.facts import Facts, facts_from
from runs.policy.told_apart import told_apart
from workspaces.units import gpu_time, plural


@dataclass(frozen=True, slots=True)
class Kept:
    """A decision as it was taken. `gpu_ms` is what its launches might have reserved together."""

    id: str
    number: int
    outcome: str
    words: str
    candidates: list[dict[str, Any]]
    gpu_ms: int | None
    facts: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Difference:
    """One decision that would have been another."""

    kept: Kept
    now: Decided

    def as_json(self) -> dict[str, Any]:
        chosen_then, chosen_now = told_apart(_chosen(self.kept), self.now.chosen)
        return {
            "decision_id": self.kept.id,
            "number": self.kept.number,
            "outcome_then": self.kept.outcome,
            "outcome_now": self.now.outcome.value,
            "launches_then": sum(entry["is_chosen"] for entry in self.kept.candidates),
            "launches_now": len(self.now.chosen),
            "words_then": self.kept.words,
            "words_now": self.now.words,
            "chosen_then": chosen_then,
            "chosen_now": chosen_now,
        }


@dataclass(frozen=True, slots=True)
class Replay:
    """`acted` and `gpu_ms` are (then, by this version). `unread` decisions were not judged: they keep facts of a form that this labsite does not
    read, or all the time there is was taken before."""

    count: int
    same: int
    differences: tuple[Difference, ...]
    acted: tuple[int, int]
    gpu_ms: tuple[int, int]
    unread: int = 0

    @property
    def different(self) -> int:
        return self.count - self.same - self.unread

    def as_json(self) -> dict[str, Any]:
        """What pages, requests and the API say of it."""
        return {
            "decisions": self.count,
            "different": self.different,
            "unread": self.unread,
            "acted_then": self.acted[0],
            "acted_now": self.acted[1],
            "gpu_ms_then": self.gpu_ms[0],
            "gpu_ms_now": self.gpu_ms[1],
            "changed": [difference.as_json() for difference in self.differences],
        }


def replay(
    policy: Policy, decisions: Iterable[Kept], *, shown: int = 50, answer: Callable[[Policy, Facts], Facts] = lambda _, facts: facts
) -> Replay:
    """The version's answer to each; of those that differ the first `shown` in the order given. `answer` adds what expressions say of the facts."""
    count = same = unread = 0
    differences: list[Difference] = []
    acted, gpu_ms = [0, 0], [0, 0]
    for kept in decisions:
        count += 1
        try:
            now = decide(policy, answer(policy, facts_from(kept.facts)))
        except (ValueError, TypeError, KeyError):
            unread += 1
            continue
        for place, (outcome, cost) in enumerate(((kept.outcome, kept.gpu_ms), (now.outcome.value, now.gpu_ms))):
            if outcome == Outcome.ACTS:
                acted[place] += 1
                gpu_ms[place] += cost or 0
        if _is_same(kept, now):
            same += 1
        elif len(differences) < shown:
            differences.append(Difference(kept, now))
    return Replay(count, same, tuple(differences), (acted[0], acted[1]), (gpu_ms[0], gpu_ms[1]), unread)


UNASKED = {
    "trigger": "the trigger",
    "pool": "the pool",
    "gpu_hours_each": "the hours of each run",
    "inputs": "the inputs",
    "name": "the name",
}


def unasked(before: Mapping[str, Any] | None, after: Policy) -> list[str]:
    """What a version changes that facts kept under the version `before` cannot answer for, in words: what it would have been asked about, what its
    launches would have read and reserved. A replay takes these as they were."""
    if before is None:
        return []
    old, new = before.get("action", {}), after.action
    names = ["trigger"] if before.get("trigger") != after.trigger else []
    names += [name for name in ("pool", "gpu_hours_each", "inputs", "name") if old.get(name) != new.get(name)]
    return [UNASKED[name] for name in names]


def in_words(found: Replay, weeks: int, *, is_cut: bool = False, unasked: Sequence[str] = ()) -> str:
    """One to three sentences for whoever decides. `is_cut`: there were more, and these are the newest. `unasked`: what is left out of account."""
    span = f"in the last {plural(weeks, 'week', 'weeks')}"
    if not found.count:
        return f"Nothing was decided {span}, so there is nothing to hold it against."
    others = "1 would have been another" if found.different == 1 else f"{found.different:,} would have been others"
    of = f"{'the newest ' if is_cut else ''}{plural(found.count, 'decision', 'decisions')}"
    unjudged = f", and {found.unread:,} {'was' if found.unread == 1 else 'were'} not judged" if found.unread else ""
    would = f"It would have acted {plural(found.acted[1], 'time', 'times')} instead of {found.acted[0]:,}"
    apart = (
        f" It also changes {_listed(unasked)}: what that would have made of it is not in the facts, and not counted here."
        if unasked
        else ""
    )
    return (
        f"Of {of} {span} {others if found.different else 'none would have been another'}{unjudged}. {would}, and reserved at most "
        f"{gpu_time(found.gpu_ms[1])} instead of {gpu_time(found.gpu_ms[0])}.{apart}"
    )


def _listed(words: Sequence[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _is_same(kept: Kept, now: Decided) -> bool:
    return (kept.outcome, _chosen(kept)) == (now.outcome.value, now.chosen)


def _chosen(kept: Kept) -> list[dict[str, Any]]:
    return [entry["parameters"] for entry in kept.candidates if entry["is_chosen"]]
