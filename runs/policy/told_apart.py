"""Two choices of configurations in words in which one sees how they differ. Pure."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

Point = Mapping[str, Any]
MOST, LONGEST, LONGEST_VALUE = 5, 160, 40  # configurations; characters of each, and of a name or value of it


def told_apart(then: Sequence[Point], now: Sequence[Point]) -> tuple[list[str], list[str]]:
    """Each side's configurations, the first five and how many more: those first that the other lacks, and of each the parameters first whose values
    are not the same in all. Nothing where both are the same."""
    if list(then) == list(now):
        return [], []
    points = [*then, *now]
    names = {name for point in points for name in point}
    alike = {name for name in names if all(name in point and point[name] == points[0][name] for point in points)}
    return _side(then, now, alike), _side(now, then, alike)


def _side(points: Sequence[Point], others: Sequence[Point], alike: set[str]) -> list[str]:
    ordered = sorted(points, key=lambda point: point in others)
    more = len(ordered) - MOST
    return [_words(point, alike) for point in ordered[:MOST]] + ([f"and {more:,} more"] if more > 0 else [])


def _words(point: Point, alike: set[str]) -> str:
    """`rate: 0.7, epochs: 1`."""
    names = sorted(point, key=lambda name: (name in alike, name))
    return _cut(", ".join(f"{_cut(name, LONGEST_VALUE)}: {_cut(_value(point[name]), LONGEST_VALUE)}" for name in names), LONGEST)


def _value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
