"""Parallel coordinates (Inselberg, 1985): one upright axis a parameter and one for the result, one line a member. Geometry only. Pure."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from runs.charts import WIDTH, Tick, log_ticks, ticks
from workspaces.text import is_finite

HEIGHT = 240  # px
ROOM = 12  # px above and below the outermost values, so that no line runs along the edge
MAX_NAMES = 16  # values of an axis without numbers that are written out
TONES = 5
LOG_FROM = 30  # an axis of numbers above zero that spans more than this factor is logarithmic


@dataclass(frozen=True, slots=True)
class Axis:
    name: str
    at: str  # percent of the width
    anchor: str
    ticks: tuple[Tick, ...]
    is_log: bool

    @property
    def label(self) -> str:
        name = self.name if len(self.name) <= 24 else self.name[:23] + "…"
        return f"{name}, log" if self.is_log else name

    @property
    def tick_anchor(self) -> str:
        """Labels stand on the inner side of the outermost axes."""
        return "end" if self.anchor == "end" else "start"

    @property
    def dx(self) -> int:
        return -6 if self.anchor == "end" else 6


@dataclass(frozen=True, slots=True)
class Line:
    key: str  # of the member
    path: str
    tone: int  # 1 (worst) to TONES (best) by the last axis; 0 where the member has no number there
    label: str


@dataclass(frozen=True, slots=True)
class Parallel:
    axes: tuple[Axis, ...]
    lines: tuple[Line, ...]  # worst first, so that the best are drawn over them
    height: int = HEIGHT
    width: int = WIDTH
    name_y: int = HEIGHT + 18
    full_height: int = HEIGHT + 26


@dataclass(frozen=True, slots=True)
class _Scale:
    """From a value to its height, and the marks beside the axis."""

    places: dict[str, float] | None  # of values that are no numbers
    low: float = 0.0
    high: float = 1.0
    is_log: bool = False

    def down(self, value: Any) -> float | None:
        if self.places is not None:
            share = self.places.get(_spelled(value))
        elif _is_number(value):
            at = math.log10(value) if self.is_log else float(value)
            share = (at - self.low) / (self.high - self.low) if self.high > self.low else 0.5
        else:
            share = None
        return None if share is None else HEIGHT - ROOM - share * (HEIGHT - 2 * ROOM)


def parallel(names: Sequence[str], members: Sequence[tuple[str, Sequence[Any]]], *, descends: bool = False) -> Parallel:
    """Axes in the order of `names`, the result last; each member is a key and one value an axis. `descends`: small results are good.

    Values that are missing, NaN or infinite leave a gap. Axes of numbers are linear, or logarithmic where they span more than a factor of 30;
    others have a place for each value, in the order in which they first come.
    """
    columns = [[values[index] for _, values in members] for index in range(len(names))]
    scales = [_scale(column) for column in columns]
    tones = _tones(columns[-1] if columns else [], descends)
    gaps = max(1, len(names) - 1)
    axes = []
    for index, (name, scale) in enumerate(zip(names, scales, strict=True)):
        anchor = "start" if index == 0 else "end" if index == len(names) - 1 else "middle"
        axes.append(Axis(name, f"{100 * index / gaps:.2f}%", anchor, _marks(scale, columns[index]), scale.is_log))
    lines = []
    for (key, values), tone in zip(members, tones, strict=True):
        points = [(WIDTH * index / gaps, scale.down(value)) for index, (scale, value) in enumerate(zip(scales, values, strict=True))]
        label = " · ".join(f"{name} {_word(value)}" for name, value in zip(names, values, strict=True))
        lines.append(Line(key, _path(points), tone, label))
    return Parallel(tuple(axes), tuple(sorted(lines, key=lambda line: line.tone)))


def _scale(column: list[Any]) -> _Scale:
    known = [value for value in column if value is not None]
    numbers = [float(value) for value in known if _is_number(value)]
    if numbers and all(isinstance(value, int | float) and not isinstance(value, bool) for value in known):
        low, high = min(numbers), max(numbers)
        if low > 0 and high / low > LOG_FROM:
            return _Scale(None, math.log10(low), math.log10(high), is_log=True)
        return _Scale(None, low, high)
    spelled = list(dict.fromkeys(_spelled(value) for value in known))
    last = max(1, len(spelled) - 1)
    return _Scale({text: index / last if len(spelled) > 1 else 0.5 for index, text in enumerate(spelled)})


def _marks(scale: _Scale, column: list[Any]) -> tuple[Tick, ...]:
    if scale.places is not None:
        values = {_spelled(value): value for value in column if value is not None}
        shown = list(values.items()) if len(values) <= MAX_NAMES else [next(iter(values.items())), list(values.items())[-1]]
        return tuple(Tick(f"{scale.down(value):.1f}", _word(value)) for _, value in shown)
    numbers = sorted({float(value) for value in column if _is_number(value)})
    if len(numbers) <= 6:
        at = numbers
    elif scale.is_log:
        at = [10**power for power in log_ticks(scale.low, scale.high)]
    else:
        at = ticks(scale.low, scale.high)
    return tuple(Tick(f"{scale.down(value):.1f}", _word(value)) for value in at)


def _tones(results: list[Any], descends: bool) -> list[int]:
    """A fifth of the members for each tone, equal results in one."""
    numbers = sorted({float(value) for value in results if _is_number(value)}, reverse=descends)
    place = {value: index for index, value in enumerate(numbers)}
    most = max(1, len(numbers) - 1)
    return [1 + round(place[float(value)] / most * (TONES - 1)) if _is_number(value) else 0 for value in results]


def _path(points: list[tuple[float, float | None]]) -> str:
    parts, pen = [], False
    for x, y in points:
        if y is None:
            pen = False
            continue
        parts.append(f"{'L' if pen else 'M'}{x:.1f} {y:.1f}")
        pen = True
    return "".join(parts)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and is_finite(value)


def _spelled(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)


def _word(value: Any) -> str:
    """A value as a label: short, and never markup of any kind."""
    if value is None:
        return "—"
    if _is_number(value):
        return f"{value:.4g}"
    text = value if isinstance(value, str) else _spelled(value)
    return text if len(text) <= 24 else text[:23] + "…"
