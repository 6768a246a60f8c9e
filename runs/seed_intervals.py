"""What repeated measurements say of their mean or median: a 95 % interval, with the method named. Pure.

Mean: Student's t, with the quantile from the closed forms of its distribution for whole degrees of freedom (Abramowitz and Stegun, Handbook of
Mathematical Functions, 26.7.3 and 26.7.4), beyond `SERIES_TO` of them by the expansion 26.7.5. Median: between two order statistics, with the
binomial distribution (David and Nagaraja, Order Statistics, 3rd edition, 7.1), which assumes nothing of how the values are distributed.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

LEVEL = 0.95
MEAN, MEDIAN = METHODS = ("mean", "median")
SERIES_TO = 1_000  # degrees of freedom, and values, up to which nothing is approximated
LARGEST = 1e150  # beyond it the squares of a spread are no numbers any more, in PostgreSQL too
NORMAL_975 = 1.959963984540054


@dataclass(frozen=True, slots=True)
class Interval:
    low: float
    high: float


def interval(method: str, values: Sequence[float]) -> Interval | None:
    """Of the mean or median of `values`; None where they are too few for one (under 2, under 6), or not all finite numbers."""
    if not can_be_summed(values):
        return None
    return _of_mean(values) if method == MEAN else _of_median(values)


def can_be_summed(values: Sequence[float]) -> bool:
    """Are all of them numbers between -LARGEST and LARGEST? Others have neither mean nor interval."""
    return all(-LARGEST <= value <= LARGEST for value in values)


def standard_error(values: Sequence[float]) -> float | None:
    """Of their mean; None for fewer than two."""
    if len(values) < 2 or not can_be_summed(values):
        return None
    middle = math.fsum(values) / len(values)
    return math.sqrt(math.fsum((value - middle) ** 2 for value in values) / (len(values) - 1) / len(values))


@lru_cache(maxsize=4096)
def student_975(freedom: int) -> float:
    """The 97.5 % quantile of Student's t with so many degrees of freedom, 1 or more."""
    if freedom > SERIES_TO:
        return _expanded(freedom)
    low, high = NORMAL_975, 13.0  # that of one degree of freedom is 12.706
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if _within(middle, freedom) < LEVEL else (low, middle)
    return (low + high) / 2


@lru_cache(maxsize=4096)
def lower_place(count: int) -> int:
    """From 1: between the value of this place and the one as far from the other end lies the median with at least 95 %; 0: too few values."""
    if count > SERIES_TO:
        return math.floor(count / 2 - NORMAL_975 * math.sqrt(count) / 2)
    below, place = 0, 0  # chances in 2^count that fewer than `place` values lie below the median
    while 40 * (below := below + math.comb(count, place)) <= 2**count:  # at each end 2.5 %
        place += 1
    return place


def _of_mean(values: Sequence[float]) -> Interval | None:
    error = standard_error(values)
    if error is None:
        return None
    middle, reach = math.fsum(values) / len(values), student_975(len(values) - 1) * error
    return Interval(middle - reach, middle + reach)


def _of_median(values: Sequence[float]) -> Interval | None:
    place = lower_place(len(values))
    if not place:
        return None
    ordered = sorted(values)
    return Interval(ordered[place - 1], ordered[len(ordered) - place])


def _within(t: float, freedom: int) -> float:
    """The share of Student's t between -t and t."""
    angle = math.atan2(t, math.sqrt(freedom))
    sine, cosine = math.sin(angle), math.cos(angle)
    term = total = 1.0 if freedom % 2 == 0 else cosine
    for step in range(2 if freedom % 2 == 0 else 3, freedom - 1, 2):
        term *= cosine * cosine * (step - 1) / step
        total += term
    if freedom % 2 == 0:
        return sine * total
    return 2 / math.pi * (angle + (sine * total if freedom > 1 else 0.0))


def _expanded(freedom: int) -> float:
    x, n = NORMAL_975, float(freedom)
    return x + (x**3 + x) / (4 * n) + (5 * x**5 + 16 * x**3 + 3 * x) / (96 * n * n)
