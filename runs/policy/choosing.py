"""Rules that choose the configurations of the next sweep from the results so far. Pure, and the same for the same facts.

Whoever was not chosen is kept with the reason (feature 124): a choice without its alternatives cannot be judged.

`successive_halving`: each configuration begins with the least of a resource (epochs, games); of each rung the best 1/eta go on with eta times as
much (Jamieson and Talwalkar, 2016, "Non-stochastic best arm identification and hyperparameter optimization"; promoted as results come, as in Li et
al., 2020, "A system for massively parallel hyperparameter tuning").
`ucb1`: each configuration of a grid is an arm, a run's score its reward in [0, 1]; the arms of the largest upper confidence bounds are played next
(Auer, Cesa-Bianchi and Fischer, 2002, "Finite-time analysis of the multiarmed bandit problem").
"""

import functools
import itertools
import json
import math
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

from runs.policy.facts import Facts, Result
from runs.policy.memory import Avoided, Entry, said_against, said_for
from runs.search_space import BadSpace, SearchSpace, read_space
from workspaces.units import number

WHOLE = {"type": "integer", "minimum": 1, "maximum": 1_000_000}
MAX_CHOSEN, MAX_ARMS, MAX_DRAWS = 100, 1_000, 10_000
MAX_AVOIDED = 50  # points of a draw that memory speaks against, kept as alternatives
SHOWN = 100  # alternatives that are kept

Parameters = dict[str, Any]
_spelled = json.JSONEncoder(sort_keys=True).encode  # made once: a simulation spells millions of points
Favoured = Callable[[Parameters], Entry | None]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A configuration that was looked at. `score` is what it was judged by, in words; `run` the result behind it, empty where there is none;
    `memory` the entry that spoke against it."""

    parameters: Parameters
    is_chosen: bool
    words: str
    score: str = ""
    run: str = ""
    memory: str = ""

    def as_json(self) -> dict[str, Any]:
        kept = {"parameters": self.parameters, "is_chosen": self.is_chosen, "words": self.words, "score": self.score, "run": self.run}
        return kept | ({"memory": self.memory} if self.memory else {})


@dataclass(frozen=True, slots=True)
class Choice:
    """What to try next, and everything that was looked at. Nothing to try: `words` say why."""

    words: str
    candidates: tuple[Candidate, ...] = ()

    @property
    def chosen(self) -> list[Parameters]:
        return [candidate.parameters for candidate in self.candidates if candidate.is_chosen]


def _nothing(_: Parameters) -> None:
    """Memory speaks for no point."""


class Chooses(Protocol):
    """Takes a rule's parameters, the facts, and what memory speaks against: that is never chosen, and kept with the reason. What it speaks for goes
    before others that the rule holds equal."""

    def __call__(self, rule: dict[str, Any], facts: Facts, avoided: Avoided, favoured: Favoured = _nothing) -> Choice: ...


@dataclass(frozen=True, slots=True)
class Rule:
    choose: Chooses
    faults: Callable[[dict[str, Any]], list[str]]
    parameters: dict[str, Any] = field(default_factory=dict)
    needs: tuple[str, ...] = ()


# --- Successive halving -------------------------------------------------------------------------------------------------------------------


def _halve(rule: dict[str, Any], facts: Facts, avoided: Avoided, favoured: Favoured = _nothing) -> Choice:
    """From the highest rung down: whoever is among the best of a rung and not on the next goes on; where nobody is, new ones are drawn."""
    resource, eta = rule["resource"], rule.get("eta", 3)
    rungs = _rungs(rule)
    names = sorted(rule["axes"])
    at = {level: _tried(facts.results, names, {resource: level}) for level in rungs}
    for level, above in reversed(list(itertools.pairwise(rungs))):
        ranked = _ranked(at[level], facts.direction)
        room = len(ranked) // eta
        due = {key: result for key, result in ranked[:room] if key not in at[above]}
        against = {key: avoided({**_point(result, names), resource: above}) for key, result in due.items()}
        going = [key for key in due if against[key] is None]
        if going:
            return _climb(ranked, going, room, (resource, level, above), at[above], names, against)
    known = set().union(*at.values())
    drawn, passed_over = _drawn(rule, known, lambda point: avoided({**point, resource: rungs[0]}), favoured)
    spoken = [_spoken_against({**point, resource: rungs[0]}, entry) for point, entry in passed_over]
    if not drawn and spoken:
        return Choice("Every configuration that is left has been tried, or memory speaks against it.", tuple(spoken))
    if not drawn:
        return Choice("Every configuration of the space has been tried, and none is due for more.")
    waiting = len(at[rungs[0]]) - len(_ranked(at[rungs[0]], facts.direction))
    words = f"Nobody is due for the next rung, so {len(drawn)} new configurations begin with {rungs[0]} {resource}."
    fresh = [
        Candidate({**point, resource: rungs[0]}, True, _also("drawn from the space, not tried before", favoured(point))) for point in drawn
    ]
    tried = [_passed(result, resource, rungs[0]) for _, result in _ranked(at[rungs[0]], facts.direction)]
    looked_at = (*fresh, *spoken, *tried)[: max(SHOWN, len(fresh))]
    return Choice(f"{words} {waiting} of the first rung have no score." if waiting else words, looked_at)


def _climb(
    ranked: list[tuple[str, Result]],
    going: list[str],
    room: int,
    step: tuple[str, int, int],
    above: dict[str, Result],
    names: list[str],
    against: dict[str, Entry | None],
) -> Choice:
    resource, level, next_level = step
    found = []
    for place, (key, result) in enumerate(ranked, start=1):
        is_chosen, entry = key in going[:MAX_CHOSEN], against.get(key)
        amount = next_level if is_chosen else level
        why = "goes on" if is_chosen else said_against(entry) if entry else "has gone on" if key in above else f"not among the best {room}"
        words = f"{place} of {len(ranked)} with {level} {resource}: {why}"
        memory = entry["id"] if entry else ""
        found.append(Candidate({**_point(result, names), resource: amount}, is_chosen, words, number(result.value), result.run, memory))
    kept = sorted(found, key=lambda candidate: not candidate.is_chosen)[:SHOWN]
    return Choice(f"{len(going)} of {len(ranked)} configurations with {level} {resource} go on with {next_level}.", tuple(kept))


def _passed(result: Result, resource: str, level: int) -> Candidate:
    return Candidate(result.parameters, False, f"tried with {level} {resource}; not due for more", number(result.value), result.run)


def _point(result: Result, names: list[str]) -> Parameters:
    return {name: result.parameters.get(name) for name in names}


def _also(words: str, entry: Entry | None) -> str:
    return f"{words}; {said_for(entry)}" if entry is not None else words


def _spoken_against(point: Parameters, entry: Entry) -> Candidate:
    return Candidate(point, False, said_against(entry), memory=entry["id"])


def _drawn(
    rule: dict[str, Any], known: set[str], avoided: Avoided, favoured: Favoured
) -> tuple[list[Parameters], list[tuple[Parameters, Entry]]]:
    """New points of the space, none of which is known, and those that memory speaks against. A sampler draws on where the last draw ended, a grid
    goes through its points, first through those that memory speaks for."""
    space, wanted = _space(rule), min(int(rule.get("first", 6)), MAX_CHOSEN)
    points: list[Parameters] = []
    passed_over: list[tuple[Parameters, Entry]] = []
    order = list(range(1, min(space.count, MAX_DRAWS) + 1))
    if space.kind == "grid":
        random.Random(f"order:{rule.get('seed', 0)}").shuffle(order)  # noqa: S311  # an experiment's draw, not a secret
        if favoured is not _nothing:
            order.sort(key=lambda place: favoured(space.member(place).parameters) is None)
    for place in order:
        point = space.member(place).parameters
        key = _key(point)
        if key not in known:
            known = known | {key}
            entry = avoided(point)
            if entry is None:
                points.append(point)
            elif len(passed_over) < MAX_AVOIDED:
                passed_over.append((point, entry))
        if len(points) == wanted:
            break
    return points, passed_over


def _rungs(rule: dict[str, Any]) -> list[int]:
    rungs, level = [], int(rule["least"])
    while level <= rule["most"]:
        rungs.append(level)
        level *= int(rule.get("eta", 3))
    return rungs


def _halving_faults(rule: dict[str, Any]) -> list[str]:
    if rule["least"] > rule["most"]:
        return [f"rule successive_halving: least {rule['least']} is above most {rule['most']}."]
    if rule["resource"] in rule["axes"]:
        return [f"rule successive_halving: {rule['resource']} is the resource, which the rungs set; take it out of the axes."]
    return _space_faults(rule)


# --- UCB1 ---------------------------------------------------------------------------------------------------------------------------------


def _bandit(rule: dict[str, Any], facts: Facts, avoided: Avoided, favoured: Favoured = _nothing) -> Choice:
    """The arms that were never played first, in the grid's order; then by mean + sqrt(2 ln n / n_i). Of equals first what memory speaks for."""
    count = int(rule.get("arms", 3))
    names = sorted(rule["axes"])
    played: dict[str, list[Result]] = {}
    for result in facts.results:
        key = _key({name: result.parameters.get(name) for name in names})
        played.setdefault(key, []).append(result)
    total = sum(len(_rewards(rows, facts.direction)) for rows in played.values())
    arms = []
    for place, (point, key) in enumerate(_grid(_spelled({"rule": rule["rule"], "axes": rule["axes"]}))):
        results = played.get(key, [])
        rewards = _rewards(results, facts.direction)
        bound = sum(rewards) / len(rewards) + math.sqrt(2 * math.log(total) / len(rewards)) if rewards else math.inf
        arms.append((-bound, favoured(point) is None, place, point, rewards, results))
    arms.sort(key=lambda arm: arm[:3])
    found: list[Candidate] = []
    going = 0
    for bound, _, _, point, rewards, results in arms:
        entry = avoided(point)
        is_chosen = entry is None and going < count
        going += is_chosen
        words = (
            f"bound {number(-bound, places=3)}: mean {number(sum(rewards) / len(rewards), places=3)} of {len(rewards)} of {total} plays"
            if rewards
            else "never played"
        )
        words = _also(words, favoured(point))
        score = number(sum(rewards) / len(rewards), places=3) if rewards else ""
        run, memory = results[-1].run if results else "", entry["id"] if entry else ""
        found.append(Candidate(point, is_chosen, f"{words}; {said_against(entry)}" if entry else words, score, run, memory))
    shown = tuple(sorted(found, key=lambda candidate: not candidate.is_chosen)[:SHOWN])
    if not going:
        return Choice(f"Memory speaks against each of the {len(arms)} configurations.", shown)
    against = sum(bool(candidate.memory) for candidate in found)
    spared = f" Memory speaks against {against}." if against else ""
    return Choice(f"{going} of {len(arms)} configurations have the largest upper confidence bounds.{spared}", shown)


@functools.lru_cache(maxsize=8)
def _grid(spelled: str) -> tuple[tuple[Parameters, str], ...]:
    """Every point of a grid in its order, with its key: drawn up once for the thousands of decisions that a simulation goes through."""
    return tuple((member.parameters, _key(member.parameters)) for member in _space(json.loads(spelled)))


def _rewards(rows: Iterable[Result], direction: str) -> list[float]:
    """Scores as rewards in [0, 1]; a run that ended without one has earned nothing."""
    rewards = [min(1.0, max(0.0, result.value)) if result.value is not None else 0.0 for result in rows if result.is_ended]
    return rewards if direction == "maximize" else [1 - reward for reward in rewards]


def _bandit_faults(rule: dict[str, Any]) -> list[str]:
    faults = _space_faults(rule)
    if faults:
        return faults
    space = _space(rule)
    if space.kind != "grid" or space.count > MAX_ARMS:
        return [f"rule ucb1: its arms are the points of a grid, {MAX_ARMS:,} at most; name the values of each axis."]
    return []


# --- Pieces -------------------------------------------------------------------------------------------------------------------------------


def _space(rule: dict[str, Any]) -> SearchSpace:
    axes = rule["axes"]
    if all(isinstance(axis, list) for axis in axes.values()):
        return read_space({"kind": "grid", "axes": axes})
    return read_space({"kind": "sampler", "axes": axes, "count": MAX_DRAWS, "seed": rule.get("seed", 0)})


def _space_faults(rule: dict[str, Any]) -> list[str]:
    try:
        _space(rule)
    except BadSpace as fault:
        return [f"rule {rule['rule']}: {fault}"]
    return []


def _tried(results: Iterable[Result], names: list[str], exactly: Parameters) -> dict[str, Result]:
    """The newest result of each configuration that ran with exactly these parameters beside it."""
    found: dict[str, Result] = {}
    for result in results:
        if all(result.parameters.get(name) == value for name, value in exactly.items()):
            found[_key({name: result.parameters.get(name) for name in names})] = result
    return found


def _ranked(tried: dict[str, Result], direction: str) -> list[tuple[str, Result]]:
    """Those with a score, the best first; equal ones in the order of their keys."""
    scored = [(key, result) for key, result in tried.items() if result.value is not None]
    sign = -1 if direction == "maximize" else 1
    return sorted(scored, key=lambda entry: (sign * (entry[1].value or 0.0), entry[0]))


def _key(point: Parameters) -> str:
    return _spelled(point)


_AXES: dict[str, Any] = {"type": "object", "minProperties": 1, "maxProperties": 16}
RULES: dict[str, Rule] = {
    "successive_halving": Rule(
        _halve,
        _halving_faults,
        {
            "axes": _AXES,
            "resource": {"type": "string", "minLength": 1, "maxLength": 100},
            "least": WHOLE,
            "most": WHOLE,
            "eta": {"type": "integer", "minimum": 2, "maximum": 100},
            "first": {"type": "integer", "minimum": 1, "maximum": MAX_CHOSEN},
            "seed": {"type": "integer", "minimum": 0, "maximum": 2**53},
        },
        ("axes", "resource", "least", "most"),
    ),
    "ucb1": Rule(
        _bandit,
        _bandit_faults,
        {"axes": _AXES, "arms": {"type": "integer", "minimum": 1, "maximum": MAX_CHOSEN}},
        ("axes",),
    ),
}
