"""Geometry of the charts that the server draws: from numbers to coordinates; the markup is in `templates/parts/chart_*.html`. Pure.

Curves live in a plane WIDTH units wide that the browser stretches to the space there is, with strokes of constant width, so that
one drawing serves a phone and a projector. Labels are placed by percentages and pixels and therefore never stretch.
"""

import math
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from workspaces import units

WIDTH = 1000  # units of the plane: as many columns as down-sampling keeps
HEIGHT = 200  # px
LARGEST = sys.float_info.max
Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Tick:
    at: str  # percent of the width, or px from the top
    label: str
    anchor: str = "middle"


@dataclass(frozen=True, slots=True)
class Curve:
    name: str
    path: str
    number: int  # 1..6, the class of its stroke


@dataclass(frozen=True, slots=True)
class Figure:
    """A curve of one point: a number is all there is to say of it."""

    name: str
    value: str
    at: str


@dataclass(frozen=True, slots=True)
class LineChart:
    curves: tuple[Curve, ...]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    x0: float
    x1: float
    y0: float  # in log10 when `is_log`
    y1: float
    is_log: bool
    height: int
    target: str  # px from the top, or ""
    description: str
    figures: tuple[Figure, ...] = ()  # instead of curves where none has a second point

    @property
    def is_empty(self) -> bool:
        return not any(curve.path for curve in self.curves)


@dataclass(frozen=True, slots=True)
class Sparkline:
    path: str
    end_x: str
    end_y: str
    target: str
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class Bar:
    x: str  # percent
    width: str  # percent
    y: str
    height: str
    label: str
    value: float
    tone: str


@dataclass(frozen=True, slots=True)
class Meter:
    spent: str  # percent of the limit, never above 100 together with `reserved`
    reserved: str
    pace: str
    is_over: bool


@dataclass(frozen=True, slots=True)
class Interval:
    """A value with its error on the axis of all of them, in percent of the width: `near` is ± one standard error, `far` the 95 %
    interval, both None where no error is known; `beyond` is "low" or "high" where the value itself stands off the axis."""

    at: str
    near: tuple[str, str] | None = None
    far: tuple[str, str] | None = None
    beyond: str = ""


@dataclass(frozen=True, slots=True)
class Intervals:
    ticks: tuple[Tick, ...]
    rows: tuple[Interval | None, ...]  # None where there is no number to show


def downsample(points: Sequence[Point], columns: int = WIDTH) -> list[Point]:
    """At most two points a column, its lowest and highest, in the order they came; a column of nothing but NaN keeps one.

    Extremes survive: a spike one step wide is still there at a million points. Gaps narrower than a column are not seen. Points come in
    order of x.
    """
    shown = [point for point in points if math.isfinite(point[0])]
    if len(shown) <= 2 * columns:
        return list(shown)
    first, last = shown[0][0], shown[-1][0]
    span = (last - first) or 1.0
    kept: list[Point] = []
    column: list[Point] = []
    current = 0
    for point in shown:
        index = min(int((point[0] - first) / span * columns), columns - 1)
        if index != current:
            kept.extend(_extremes(column))
            column, current = [], index
        column.append(point)
    kept.extend(_extremes(column))
    return kept


def _extremes(column: list[Point]) -> list[Point]:
    numbers = [point for point in column if math.isfinite(point[1])]
    if not numbers:
        return column[:1]
    low, high = min(numbers, key=lambda point: point[1]), max(numbers, key=lambda point: point[1])
    return [low] if low is high else sorted((low, high), key=lambda point: point[0])


def ticks(low: float, high: float, about: int = 4) -> list[float]:
    """Round numbers (1, 2, 5 x 10^n) inside [low, high], about so many."""
    if not (math.isfinite(low) and math.isfinite(high)) or high <= low:
        return [low] if math.isfinite(low) else []
    raw = (high / about) - (low / about)  # divided first: the span of two huge numbers would overflow
    power = 10.0 ** math.floor(math.log10(raw)) if raw > 0 else 0.0
    if power == 0.0 or not math.isfinite(power):
        return [low]
    step = next((factor * power for factor in (1, 2, 5) if factor * power >= raw), 10 * power)
    start, end = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    if end - start > 4 * about:  # the step is below the precision of numbers this large
        return [low, high]
    return [index * step for index in range(start, end + 1)]


def log_ticks(low: float, high: float) -> list[float]:
    """Powers of ten inside [10^low, 10^high], thinned; 2 and 5 between them when there are fewer than three."""
    exponents = range(math.ceil(low - 1e-9), math.floor(high + 1e-9) + 1)
    if len(exponents) >= 3:
        return [float(power) for power in exponents[:: math.ceil(len(exponents) / 6)]]
    powers = range(math.floor(low), math.ceil(high) + 1)
    between = [power + math.log10(factor) for power in powers for factor in (1, 2, 5)]
    return [at for at in between if low - 1e-9 <= at <= high + 1e-9] or [low]


def path(points: Iterable[Point]) -> str:
    """An SVG path; a NaN lifts the pen, and a lone point becomes a stroke of no length, which round caps show as a dot."""
    parts: list[str] = []
    pen = 0
    for x, y in points:
        if not math.isfinite(y):
            if pen == 1:
                parts.append("h0")
            pen = 0
            continue
        parts.append(f"{'L' if pen else 'M'}{x:.1f} {y:.1f}")
        pen += 1
    return "".join(parts) + ("h0" if pen == 1 else "")


def _bounds(values: list[float]) -> tuple[float, float]:
    """Lowest and highest with a sixteenth of room around, kept inside what a float can hold."""
    if not values:
        return 0.0, 1.0
    low, high = min(values), max(values)
    if low == high:
        pad = abs(low) * 0.05 or 1.0
        return max(low - pad, -LARGEST), min(high + pad, LARGEST)
    pad = (high / 16) - (low / 16)
    return max(low - pad, -LARGEST), min(high + pad, LARGEST)


def _log10(value: float) -> float:
    return math.log10(value) if value > 0 else math.nan


def line_chart(
    series: Sequence[tuple[str, Sequence[Point]]],
    *,
    x_label: str = "step",
    log: bool = False,
    target: float | None = None,
    height: int = HEIGHT,
) -> LineChart:
    """Up to six named series of (x, y), each in order of x. `log` draws log10 of y and leaves a gap where y is not above zero."""
    drawn = [(name, downsample([(x, _log10(y)) for x, y in points] if log else points)) for name, points in series[:6]]
    goal = None if target is None or not math.isfinite(target) else (_log10(target) if log else target)
    xs = [x for _, points in drawn for x, _ in points]
    ys = [y for _, points in drawn for _, y in points if math.isfinite(y)]
    x0, x1 = (min(xs), max(xs)) if xs else (0.0, 1.0)
    if x0 == x1:
        x0, x1 = x0 - 0.5, x1 + 0.5
    y0, y1 = _bounds([*ys, goal] if goal is not None and math.isfinite(goal) and ys else ys)

    def across(x: float) -> float:
        return _share(x, x0, x1)

    def down(y: float) -> float:
        return height * (1 - _share(y, y0, y1))

    return LineChart(
        curves=tuple(
            Curve(name, path((across(x) * WIDTH, down(y)) for x, y in points), number) for number, (name, points) in enumerate(drawn, 1)
        ),
        x_ticks=tuple(_x_tick(x, across(x)) for x in (ticks(x0, x1, 5) if len(set(xs)) > 1 else sorted(set(xs)))),
        y_ticks=tuple(
            Tick(f"{down(y):.1f}", _label(10**y if log else y)) for y in (log_ticks(max(y0, -307), min(y1, 308)) if log else ticks(y0, y1))
        ),
        x0=x0,
        x1=x1,
        y0=y0,
        y1=y1,
        is_log=log,
        height=height,
        target="" if goal is None or not ys or not math.isfinite(goal) else f"{down(goal):.1f}",
        description=_describe(series, x_label),
        figures=_figures(series, x_label),
    )


def _figures(series: Sequence[tuple[str, Sequence[Point]]], x_label: str) -> tuple[Figure, ...]:
    if any(len(points) > 1 for _, points in series):
        return ()
    known = [(name, x, y) for name, points in series for x, y in points if math.isfinite(y)]
    return tuple(Figure(name, units.number(y), f"at {x_label} {_label(x)}") for name, x, y in known)


def _share(value: float, low: float, high: float) -> float:
    """Where `value` stands between the two, halved first so that a span beyond the largest float stays finite."""
    return (value / 2 - low / 2) / ((high / 2 - low / 2) or 1.0)


def _label(value: float) -> str:
    """A tick without the zeros and the binary dust of its multiplication: 0.5, not 0.5000 or 0.30000000000000004."""
    text = units.number(float(f"{value:.6g}"))
    return text.rstrip("0").rstrip(".") if "." in text and "e" not in text else text


def _x_tick(x: float, share: float) -> Tick:
    anchor = "start" if share < 0.04 else "end" if share > 0.96 else "middle"
    return Tick(f"{share * 100:.2f}%", _label(x), anchor)


def _describe(series: Sequence[tuple[str, Sequence[Point]]], x_label: str) -> str:
    sentences = []
    for name, points in series[:6]:
        known = [(x, y) for x, y in points if math.isfinite(y)]
        if not known:
            sentences.append(f"{name}: no numbers yet.")
            continue
        low, high = min(y for _, y in known), max(y for _, y in known)
        last_x, last = known[-1]
        at = f"{units.number(last)} at {x_label} {units.number(last_x)}"
        sentences.append(f"{name}: {at}, between {units.number(low)} and {units.number(high)}.")
    return " ".join(sentences) or "No series."


def sparkline(values: Sequence[float | None], *, target: float | None = None, width: int = 180, height: int = 40) -> Sparkline:
    """A curve without axes, in a box of fixed pixels; None and NaN are gaps, the dot is the last number."""
    points = downsample([(float(index), math.nan if value is None else value) for index, value in enumerate(values)], width)
    numbers = [y for _, y in points if math.isfinite(y)]
    goal = target if target is not None and math.isfinite(target) and numbers else None
    low, high = _bounds([*numbers, goal] if goal is not None else numbers)
    last_x = points[-1][0] if points else 0.0

    def place(x: float, y: float) -> Point:
        return 4 + (width - 8) * (x / last_x if last_x else 0.5), 4 + (height - 8) * (1 - _share(y, low, high))

    placed = [place(x, y) for x, y in points]
    end = next(((x, y) for x, y in reversed(placed) if math.isfinite(y)), None)
    return Sparkline(
        path=path(placed),
        end_x=f"{end[0]:.1f}" if end else "",
        end_y=f"{end[1]:.1f}" if end else "",
        target=f"{place(0, goal)[1]:.1f}" if goal is not None else "",
        width=width,
        height=height,
    )


def bars(items: Sequence[tuple[str, float, str]], *, height: int = 72) -> tuple[Bar, ...]:
    """(label, value, tone) as bars from zero; tone is "" or a state's tone. Values that are no positive number have no height."""
    top = max((value for _, value, _ in items if math.isfinite(value)), default=0.0)
    slot = 100 / max(len(items), 1)
    return tuple(
        Bar(
            x=f"{index * slot + slot * 0.14:.2f}%",
            width=f"{slot * 0.72:.2f}%",
            y=f"{height - size:.1f}",
            height=f"{size:.1f}",
            label=label,
            value=value,
            tone=tone,
        )
        for index, (label, value, tone) in enumerate(items)
        for size in [max(value / top * height, 1.0) if top > 0 and math.isfinite(value) and value > 0 else 0.0]
    )


def meter(spent: float, reserved: float, limit: float, pace: float | None = None) -> Meter:
    """What is spent and reserved of a limit, both cut at its end; `pace` is the share of the window that is over, 0..1."""
    whole = limit if limit > 0 else max(spent + reserved, 1)
    solid = min(max(spent / whole, 0), 1)
    hatched = min(max(reserved / whole, 0), 1 - solid)
    return Meter(
        spent=f"{solid:.2%}",
        reserved=f"{hatched:.2%}",
        pace="" if pace is None or not math.isfinite(pace) else f"{min(max(pace, 0), 1):.2%}",
        is_over=spent + reserved > limit,
    )


NORMAL_95 = 1.959964  # standard errors to either side that hold 95 % of a normal distribution
FENCES = 3.0  # quartile ranges beyond the quartiles from which on a value is left off the axis


def intervals(values: Sequence[tuple[float, float | None]]) -> Intervals:
    """(value, standard error) of each row on one axis; the first is the one that all are compared with, and always on it.

    A value far from the others does not press them together: it is shown as standing beyond the axis. An interval widens the axis by at most the
    span of the values and is cut there.
    """
    numbers = [(value, _error(error)) for value, error in values if math.isfinite(value)]
    if not numbers:
        return Intervals((), tuple(None for _ in values))
    low, high = _axis(numbers)
    marks = tuple(_x_tick(at, _share(at, low, high)) for at in ticks(low, high, 3) if math.isfinite(at))
    return Intervals(marks, tuple(_interval(value, _error(error), low, high) if math.isfinite(value) else None for value, error in values))


def _error(error: float | None) -> float:
    """0 where there is none to draw."""
    return error if error is not None and math.isfinite(error) and error > 0 else 0.0


def _axis(numbers: Sequence[Point]) -> Point:
    """The ends of the axis on which the values, and their intervals as far as they fit, are drawn."""
    ordered = sorted(value for value, _ in numbers)
    lower, upper = ordered[len(ordered) // 4], ordered[-1 - len(ordered) // 4]
    reach = FENCES * (upper / 2 - lower / 2) * 2 if len(ordered) >= 8 else math.inf
    leader = numbers[0][0]
    shown = [(value, error) for value, error in numbers if value == leader or not reach or lower - reach <= value <= upper + reach]
    first, last = min(value for value, _ in shown), max(value for value, _ in shown)
    widest = max(min(NORMAL_95 * error, LARGEST) for _, error in shown)
    room = (last / 2 - first / 2) * 2 or widest
    low = max(min(value - NORMAL_95 * error for value, error in shown), first - room, -LARGEST)
    high = min(max(value + NORMAL_95 * error for value, error in shown), last + room, LARGEST)
    return _bounds([low, high])


def _interval(value: float, error: float, low: float, high: float) -> Interval:
    def place(at: float) -> str:
        return f"{100 * min(max(_share(at, low, high), 0.0), 1.0):.2f}%"

    if not low <= value <= high:
        return Interval(place(value), beyond="low" if value < low else "high")
    if not error:
        return Interval(place(value))
    near, far = ((place(value - width), place(value + width)) for width in (error, NORMAL_95 * error))
    return Interval(place(value), near, far)
