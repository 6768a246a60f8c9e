"""Which runs deserve a person: rules that each give at most one finding, with its arithmetic in words. Pure.

A finding has a fixed weight; a run ranks by the sum of its weights. What is found again has the same `key`, what is found anew another one, so that
whoever has seen a run has seen just that.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import median

from workspaces.units import number, plural


class Reason(StrEnum):
    CONTAMINATED = "contaminated"
    UNDECLARED = "undeclared"
    SURPRISING = "surprising"
    FAILING = "failing"
    COST = "cost"
    FIRST = "first"


# What could make a score wrong stands above what only cost something.
WEIGHTS: dict[Reason, int] = {
    Reason.CONTAMINATED: 100,
    Reason.UNDECLARED: 80,
    Reason.SURPRISING: 60,
    Reason.FAILING: 50,
    Reason.COST: 40,
    Reason.FIRST: 20,
}
TITLES: dict[Reason, str] = {
    Reason.CONTAMINATED: "contamination suspected",
    Reason.UNDECLARED: "undeclared input",
    Reason.SURPRISING: "surprising score",
    Reason.FAILING: "fails repeatedly",
    Reason.COST: "cost far from estimate",
    Reason.FIRST: "first of a new agent",
}
EARLIER_LEAST, EARLIER_MOST = 5, 20  # earlier scores that a score is held against
BOUND = 3.5  # of the modified z-score
NORMAL = 0.6745  # MAD of a normal distribution, in standard deviations
LIKE_LEAST, LIKE_MOST = 3, 20  # earlier like runs that an estimate is made of
NAMED = 3  # of the versions that a run has read
FAR = 4  # times the estimate, or a fourth of it


@dataclass(frozen=True, slots=True)
class Piece:
    """Words of a sentence; with `dataset`, a slug, they name a version of that dataset."""

    words: str
    dataset: str = ""
    version: int = 0


@dataclass(frozen=True, slots=True)
class Finding:
    """Why a run deserves a person, in a sentence without its full stop; `pieces` is the same sentence where some of its words name something."""

    reason: Reason
    key: str
    words: str
    pieces: tuple[Piece, ...] = ()

    @property
    def title(self) -> str:
        return TITLES[self.reason]

    @property
    def weight(self) -> int:
        return WEIGHTS[self.reason]


@dataclass(frozen=True, slots=True)
class Doubted:
    """A dataset version that is contaminated or suspicious; `dataset` is its slug."""

    key: str
    name: str
    verdict: str
    dataset: str
    number: int


@dataclass(frozen=True, slots=True)
class Cost:
    """What a run has spent of one unit, what like runs before it spent, and how such an amount is written. Less than `least` beside the estimate is
    no difference."""

    unit: str
    spent: int
    like: Sequence[int]
    least: int
    written: Callable[[int], str]


def contaminated(versions: Sequence[Doubted]) -> Finding | None:
    """Of what it has read that is contaminated or suspicious, the first three by name."""
    if not versions:
        return None
    pieces = []
    for place, version in enumerate(versions[:NAMED]):
        pieces += [
            Piece(", " if place else "It has read "),
            Piece(version.name, version.dataset, version.number),
            Piece(f" ({version.verdict})"),
        ]
    if len(versions) > NAMED:
        pieces.append(Piece(f" and {len(versions) - NAMED} more"))
    key = ",".join(sorted(f"{version.key}={version.verdict}" for version in versions))
    return Finding(Reason.CONTAMINATED, f"contaminated:{key}", "".join(piece.words for piece in pieces), tuple(pieces))


def undeclared(count: int) -> Finding | None:
    if not count:
        return None
    return Finding(Reason.UNDECLARED, f"undeclared:{count}", f"It has read {plural(count, 'thing', 'things')} that it had not declared")


def surprising(value: float, error: float | None, earlier: Sequence[float]) -> Finding | None:
    """A score that is no number, or lies far outside the earlier scores, under the same contract, of the agent that made what was measured.

    Far is a modified z-score, 0.6745 (score - median) / MAD, beyond 3.5 (Iglewicz and Hoaglin, How to Detect and Handle Outliers, 1993). The
    score's own standard error stands in for the spread where that is larger. `earlier` is in the order in which the runs ended; the last 20 count,
    and from fewer than five nothing is said.
    """
    key = f"surprising:{value!r}"
    if not math.isfinite(value):
        return Finding(Reason.SURPRISING, key, f"Its score is {number(value)}")
    held = [score for score in earlier if math.isfinite(score)][-EARLIER_MOST:]
    if len(held) < EARLIER_LEAST:
        return None
    middle = median(held)
    deviation = median(abs(score - middle) for score in held)
    spread = max(deviation / NORMAL, error if error is not None and math.isfinite(error) else 0.0)
    away = abs(value - middle)
    said = (
        f"Its score is {number(value, error)}; the {len(held)} before it have the median {number(middle)} and the MAD {number(deviation)}"
    )
    if math.isclose(value, middle, rel_tol=1e-9, abs_tol=1e-12):
        return None
    if spread == 0:
        return Finding(Reason.SURPRISING, key, f"{said}: they are all alike, and it is not")
    if not away / spread > BOUND:
        return None
    return Finding(Reason.SURPRISING, key, f"{said}: {away / spread:,.1f} robust deviations away, where {BOUND} are the bound")


def failing(group: str, count: int, agent: str) -> Finding:
    """The run that failed last for a reason for which others of its agent failed too."""
    runs = plural(count, "run", "runs")
    return Finding(Reason.FAILING, f"failing:{group}", f"{runs} of {agent} failed for the same reason, this one last")


def costly(costs: Sequence[Cost], *, succeeded: bool) -> Finding | None:
    """Spent at least four times the estimate, or a fourth of it at most (which a run that failed may well have). The estimate is the one that the
    launch page gives: the median of up to 20 like runs before it that succeeded; from fewer than three there is none."""
    told, units = [], []
    for cost in costs:
        like = cost.like[-LIKE_MOST:]
        if len(like) < LIKE_LEAST:
            continue
        estimate = int(median(like))
        if abs(cost.spent - estimate) < cost.least:
            continue
        beside = (
            f"{cost.unit} {cost.written(cost.spent)}, estimate {cost.written(estimate)} from {plural(len(like), 'like run', 'like runs')}"
        )
        if cost.spent >= FAR * estimate:
            told.append(f"{beside}: {_times(cost.spent, estimate)} as much, {FAR} times is the bound")
        elif succeeded and cost.spent * FAR <= estimate:
            told.append(f"{beside}: {_times(estimate, cost.spent)} less, {FAR} times is the bound")
        else:
            continue
        units.append(f"{cost.unit}={cost.spent}")
    return Finding(Reason.COST, f"cost:{','.join(units)}", "; ".join(told)) if told else None


def _times(more: int, less: int) -> str:
    return f"{more / less:,.0f} times" if less else "immeasurably"


def first(agent: str, version: int, *, is_new_agent: bool) -> Finding:
    """The first run of an agent's version that began."""
    words = f"It is the first run of {agent}" if is_new_agent else f"It is the first run of {agent} version {version}"
    return Finding(Reason.FIRST, f"first:{version}", words)
