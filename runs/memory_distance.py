"""How far two configurations lie apart: Gower's general coefficient of similarity (Biometrics 27, 1971), as a distance. Pure.

Numbers differ by their difference over the range of that name among all that are compared; anything else by being equal or not. A name that only
one of the two has counts as wholly different. The distance is the mean over all names of both: 0 is alike, 1 has nothing in common.
"""

from collections.abc import Iterable, Mapping
from typing import Any

Ranges = Mapping[str, float]


def ranges_of(configurations: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """Of each name that has numbers, the largest less the smallest."""
    spans: dict[str, tuple[float, float]] = {}
    for configuration in configurations:
        for name, value in configuration.items():
            if _is_number(value):
                low, high = spans.get(name, (value, value))
                spans[name] = min(low, value), max(high, value)
    return {name: float(high) - float(low) for name, (low, high) in spans.items()}


def distance(one: Mapping[str, Any], other: Mapping[str, Any], ranges: Ranges) -> float:
    """Between 0 and 1; 0 of two that say nothing."""
    names = one.keys() | other.keys()
    return sum(_apart(one, other, name, ranges) for name in names) / len(names) if names else 0.0


def _apart(one: Mapping[str, Any], other: Mapping[str, Any], name: str, ranges: Ranges) -> float:
    if name not in one or name not in other:
        return 1.0
    left, right = one[name], other[name]
    if _is_number(left) and _is_number(right):
        return 0.0 if left == right else min(1.0, abs(float(left) - float(right)) / (ranges.get(name) or 1.0))
    return 0.0 if type(left) is type(right) and left == right else 1.0


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
