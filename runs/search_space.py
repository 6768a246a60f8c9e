"""The search space of a sweep: a grid, or a sampler, over an agent's parameters. Values in, members out; the same space always gives the same.

Words as in the field: a grid is the Cartesian product of the values of its axes; a sampler draws each member on its own, so that member 40
of a sweep of 50 is member 40 of a sweep of 500 (Bergstra and Bengio, 2012, "Random search for hyper-parameter optimization"). Axes stand in
the order of their names, as a JSON object has none, and the last turns fastest. Draws are of Mersenne Twister, seeded by `<seed>:<member>`.
"""

import json
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeGuard

from workspaces.text import is_finite

MAX_MEMBERS = 10_000
MAX_AXES = 16
MAX_VALUES = 1_000
MAX_VALUE_CHARACTERS = 1_000
SCALES = ("linear", "log", "integer")
KEYS = {
    "grid": {"kind", "axes", "seeds"},
    "sampler": {"kind", "axes", "seeds", "count", "seed"},
    "list": {"kind", "points", "seeds"},
}


class BadSpace(ValueError):  # an answer for people
    """A search space that is not taken; the message is a sentence, `axis` the parameter it is about."""

    def __init__(self, sentence: str, axis: str = "") -> None:
        super().__init__(sentence)
        self.axis = axis


@dataclass(frozen=True, slots=True)
class Choice:
    """An axis that takes one of its values."""

    values: tuple[Any, ...]

    def draw(self, source: random.Random) -> Any:
        return self.values[source.randrange(len(self.values))]


@dataclass(frozen=True, slots=True)
class Range:
    """An axis between two numbers, both included; `log` draws the logarithm evenly, `integer` gives whole numbers."""

    low: float
    high: float
    scale: Literal["linear", "log", "integer"] = "linear"

    def draw(self, source: random.Random) -> float | int:
        if self.scale == "integer":
            return source.randint(int(self.low), int(self.high))
        if self.scale == "log":
            drawn = math.exp(source.uniform(math.log(self.low), math.log(self.high)))
            return min(max(drawn, self.low), self.high)
        return source.uniform(self.low, self.high)


@dataclass(frozen=True, slots=True)
class Member:
    """One run of a sweep. `number` counts from 1; `seed` is the run's own, None where the space names none."""

    number: int
    parameters: dict[str, Any]
    seed: int | None


@dataclass(frozen=True, slots=True)
class SearchSpace:
    """Each point of the space is run once for each of `seeds` (once where there are none); seeds turn fastest."""

    kind: Literal["grid", "sampler", "list"]
    axes: tuple[tuple[str, Choice | Range], ...]
    seeds: tuple[int, ...]
    draws: int = 0  # points of a sampler
    seed: int = 0  # of a sampler's draws
    listed: tuple[dict[str, Any], ...] = ()  # points of a list

    @property
    def points(self) -> int:
        if self.kind == "list":
            return len(self.listed)
        if self.kind == "sampler":
            return self.draws
        return math.prod(len(axis.values) for _, axis in self.axes if isinstance(axis, Choice))

    @property
    def names(self) -> tuple[str, ...]:
        """What is varied, in the order of the alphabet; of a list whatever its points set."""
        return (
            tuple(sorted({name for point in self.listed for name in point}))
            if self.kind == "list"
            else tuple(name for name, _ in self.axes)
        )

    @property
    def count(self) -> int:
        """Members. No `len`: that of a space that is refused may be larger than a machine's word."""
        return self.points * max(1, len(self.seeds))

    def member(self, number: int) -> Member:
        """Member `number`, from 1. Raises IndexError beyond the last."""
        if not 1 <= number <= self.count:
            raise IndexError(f"A sweep of {self.count} has no member {number}.")
        point, turn = divmod(number - 1, max(1, len(self.seeds)))
        return Member(number, self._at(point), self.seeds[turn] if self.seeds else None)

    def __iter__(self) -> Iterator[Member]:
        return (self.member(number) for number in range(1, self.count + 1))

    def probes(self) -> Iterator[dict[str, Any]]:
        """Parameters that between them show every value of every axis at least once: enough to ask a schema about each."""
        if self.kind == "list":
            yield from self.listed
            return
        first = {name: axis.values[0] if isinstance(axis, Choice) else _edge(axis, axis.low) for name, axis in self.axes}
        yield first
        for name, axis in self.axes:
            for value in axis.values[1:] if isinstance(axis, Choice) else (_edge(axis, axis.high),):
                yield {**first, name: value}

    def _at(self, point: int) -> dict[str, Any]:
        if self.kind == "list":
            return dict(self.listed[point])
        if self.kind == "sampler":
            source = random.Random(f"{self.seed}:{point + 1}")  # noqa: S311  # an experiment's draw, not a secret
            return {name: axis.draw(source) for name, axis in self.axes}
        chosen: dict[str, Any] = {}
        for name, axis in reversed(self.axes):
            assert isinstance(axis, Choice)
            point, digit = divmod(point, len(axis.values))
            chosen[name] = axis.values[digit]
        return {name: chosen[name] for name, _ in self.axes}


def read_space(document: Any) -> SearchSpace:
    """A space from its JSON form; raises BadSpace.

    `{"kind": "grid", "axes": {"width": [32, 64]}, "seeds": [1, 2]}` or `{"kind": "sampler", "axes": {"rate": {"low": 0.001, "high": 1,
    "scale": "log"}, "width": [32, 64]}, "count": 20, "seed": 7}` or `{"kind": "list", "points": [{"width": 32, "rate": 0.1}]}`; `seeds` are optional.
    """
    if not isinstance(document, Mapping):
        raise BadSpace("A search space is a JSON object with kind, axes and, if you like, seeds.")
    kind = document.get("kind")
    if kind not in KEYS:
        raise BadSpace('A search space is of "kind": "grid", "sampler" or "list".')
    unknown = sorted(map(str, document.keys() - KEYS[kind]))
    if unknown:
        raise BadSpace(f"A {kind} has no {', '.join(unknown)[:200]}; it has {', '.join(sorted(KEYS[kind]))}.")
    if kind == "list":
        return _within_bounds(SearchSpace(kind, (), _seeds(document.get("seeds", [])), listed=_points(document.get("points"))))
    named = document.get("axes", {})
    if not isinstance(named, Mapping):
        raise BadSpace("The axes of a space are an object: a parameter's name, and what it may be.")
    if len(named) > MAX_AXES:
        raise BadSpace(f"A space may have {MAX_AXES} axes; this one has {len(named)}.")
    axes = tuple((str(name), _axis(str(name), value, kind)) for name, value in sorted(named.items(), key=lambda item: str(item[0])))
    seeds = _seeds(document.get("seeds", []))
    space = SearchSpace(kind, axes, seeds)
    if kind == "sampler":
        space = SearchSpace(
            kind, axes, seeds, draws=_whole(document.get("count"), "count", 0), seed=_whole(document.get("seed", 0), "seed", 0)
        )
    if not axes and not seeds:
        raise BadSpace("A sweep varies something: name at least one parameter with its values, or several seeds.")
    return _within_bounds(space)


def arithmetic(space: SearchSpace) -> str:
    """How many members, as a product: `3 rate × 2 width × 5 seeds`."""
    if space.kind == "list":
        factors = [f"{len(space.listed):,} {'point' if len(space.listed) == 1 else 'points'}"]
    elif space.kind == "sampler":
        factors = [f"{space.draws:,} draws"]
    else:
        factors = [f"{len(axis.values):,} {name}" for name, axis in space.axes if isinstance(axis, Choice)]
    if space.seeds:
        factors.append(f"{len(space.seeds):,} {'seed' if len(space.seeds) == 1 else 'seeds'}")
    return " × ".join(factors)


def _within_bounds(space: SearchSpace) -> SearchSpace:
    if space.count == 0:
        raise BadSpace("This sweep would have no member at all: every axis needs a value, and a sampler a count of at least 1.")
    if space.count > MAX_MEMBERS:
        raise BadSpace(f"This sweep would have {arithmetic(space)} = {space.count:,} members; at most {MAX_MEMBERS:,} are taken at once.")
    return space


def _points(points: Any) -> tuple[dict[str, Any], ...]:
    if not isinstance(points, list) or not points or not all(isinstance(point, Mapping) for point in points):
        raise BadSpace("The points of a list are objects, each a parameter's name and its value; there is one at least.")
    if len(points) > MAX_VALUES:
        raise BadSpace(f"A list has {len(points):,} points; {MAX_VALUES:,} are taken.")
    if any(len(point) > MAX_AXES for point in points):
        raise BadSpace(f"A point may set {MAX_AXES} parameters.")
    return tuple(dict(point) for point in _values("points", points))


def _axis(name: str, value: Any, kind: str) -> Choice | Range:
    if not 1 <= len(name) <= 100:
        raise BadSpace("A parameter's name has 1 to 100 characters.", name[:100])
    if isinstance(value, list):
        return Choice(_values(name, value))
    if not isinstance(value, Mapping):
        raise BadSpace(f"{name} needs a list of values{'' if kind == 'grid' else ', or low and high'}.", name)
    if kind == "grid":
        raise BadSpace(f"A grid takes a list of values for {name}; a range is for a sampler.", name)
    unknown = sorted(map(str, value.keys() - {"low", "high", "scale"}))
    if unknown:
        raise BadSpace(f"The range of {name} has low, high and scale, and no {', '.join(unknown)[:100]}.", name)
    low: Any = value.get("low")
    high: Any = value.get("high")
    scale = value.get("scale", "linear")
    if scale not in SCALES:
        raise BadSpace(f"The scale of {name} is linear, log or integer.", name)
    if not _is_number(low) or not _is_number(high):
        raise BadSpace(f"The range of {name} needs low and high, two finite numbers.", name)
    if low >= high:
        raise BadSpace(f"The range of {name} goes from {low} up to {high}; low must be below high.", name)
    if scale == "log" and low <= 0:
        raise BadSpace(f"A logarithmic range begins above 0; {name} begins at {low}.", name)
    if scale == "integer" and not (float(low).is_integer() and float(high).is_integer() and abs(low) < 2**53 and abs(high) < 2**53):
        raise BadSpace(f"An integer range goes between whole numbers; {name} goes from {low} to {high}.", name)
    return Range(low, high, scale)


def _values(name: str, values: list[Any]) -> tuple[Any, ...]:
    if not values:
        raise BadSpace(f"{name} has no value to try.", name)
    if len(values) > MAX_VALUES:
        raise BadSpace(f"{name} has {len(values):,} values; an axis may have {MAX_VALUES:,}.", name)
    seen = set()
    for value in values:
        try:
            spelled = json.dumps(value, sort_keys=True, allow_nan=False)
        except ValueError:
            raise BadSpace(f"A value of {name} is not a finite number.", name) from None
        if len(spelled) > MAX_VALUE_CHARACTERS:
            raise BadSpace(f"A value of {name} has more than {MAX_VALUE_CHARACTERS:,} characters.", name)
        if spelled in seen:
            raise BadSpace(f"{name} names {spelled[:60]} twice; each value is tried once, and more seeds repeat it.", name)
        seen.add(spelled)
    return tuple(values)


def _seeds(seeds: Any) -> tuple[int, ...]:
    if (
        not isinstance(seeds, Sequence)
        or isinstance(seeds, str | bytes)
        or any(isinstance(seed, bool) or not isinstance(seed, int) for seed in seeds)
    ):
        raise BadSpace("Seeds are a list of whole numbers.", "seeds")
    if len(seeds) > MAX_VALUES:
        raise BadSpace(f"A sweep may have {MAX_VALUES:,} seeds.", "seeds")
    twice = next((seed for position, seed in enumerate(seeds) if seed in seeds[:position]), None)
    if twice is not None:
        raise BadSpace(f"Seed {twice} stands twice; the same seed gives the same run again, so name each once.", "seeds")
    if any(not 0 <= seed < 2**63 for seed in seeds):
        raise BadSpace("A seed is between 0 and 9,223,372,036,854,775,807.", "seeds")
    return tuple(seeds)


def _whole(value: Any, name: str, least: int) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and least <= value < 2**63:
        return value
    raise BadSpace(f"A sampler's {name} is a whole number of at least {least}.", name)


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and is_finite(value)


def _edge(axis: Range, value: float) -> float | int:
    return int(value) if axis.scale == "integer" else value
