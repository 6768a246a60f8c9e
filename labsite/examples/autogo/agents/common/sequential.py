"""May a match be ended, and what does it say? Wald's sequential probability ratio test of two strengths in Elo, with stated error rates.

H0: the first player is `elo0` stronger, H1: it is `elo1` stronger. Draws, and openings that suit one colour, are unknowns of no interest: the
likelihood is the largest that any distribution of outcomes with the expected score of H0, or H1, gives (the generalised test). Outcomes are of
single games (0, 1/2, 1) or of pairs with colours swapped (0, 1/4, 1/2, 3/4, 1); of one opening and both colours, only pairs are independent.

Wald, Sequential Analysis (1947); Li, Liu and Ying, Generalized sequential probability ratio test for separate families of hypotheses, Sequential
Analysis 33 (2014). Error rates are those of Wald's bounds, met from below but for the step by which a bound is passed.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

ELO_SPREAD = 400.0
STEPS = 200  # of bisection
UNSEEN = 1e-3  # times that an outcome is taken to have come that never came, so that a likelihood is told from the first game on


class Verdict(StrEnum):
    """What the test says by now."""

    H0 = "H0"
    H1 = "H1"
    OPEN = "open"


@dataclass(frozen=True)
class Question:
    """`alpha`: how often H1 is accepted where H0 is true; `beta`: how often H0 is where H1 is true."""

    elo0: float
    elo1: float
    alpha: float = 0.05
    beta: float = 0.05

    def __post_init__(self) -> None:
        if not self.elo0 < self.elo1:
            raise ValueError(f"elo0 is {self.elo0:g} and elo1 is {self.elo1:g}; elo0 must be the smaller")
        if not 0 < self.alpha < 0.5 or not 0 < self.beta < 0.5:
            raise ValueError("alpha and beta must lie between 0 and 0.5")

    @property
    def bounds(self) -> tuple[float, float]:
        """Of the log-likelihood ratio: at or below the first H0 is accepted, at or above the second H1."""
        return math.log(self.beta / (1 - self.alpha)), math.log((1 - self.beta) / self.alpha)

    def verdict(self, ratio: float) -> Verdict:
        low, high = self.bounds
        return Verdict.H0 if ratio <= low else Verdict.H1 if ratio >= high else Verdict.OPEN


def expected_score(elo: float) -> float:
    """Share of points of a player who is `elo` stronger."""
    return 1 / (1 + 10 ** (-elo / ELO_SPREAD))


def log_likelihood_ratio(outcomes: Sequence[float], elo0: float, elo1: float) -> float:
    """Of H1 against H0, natural logarithm. `outcomes`: how often each came, from no point to all, evenly spaced; 0 where none came."""
    if len(outcomes) < 2 or any(not math.isfinite(count) or count < 0 for count in outcomes):
        raise ValueError("outcomes must be two or more counts")
    if not sum(outcomes):
        return 0.0
    counts = [count or UNSEEN for count in outcomes]
    total = sum(counts)
    points = [place / (len(counts) - 1) for place in range(len(counts))]
    shares = [count / total for count in counts]
    under0, under1 = (_likeliest(points, shares, expected_score(elo)) for elo in (elo0, elo1))
    return total * sum(share * math.log(one / zero) for share, one, zero in zip(shares, under1, under0, strict=True))


def _likeliest(points: Sequence[float], shares: Sequence[float], mean: float) -> list[float]:
    """The distribution over `points` of that mean under which `shares` are likeliest: shares / (1 + t (point - mean)), where t makes it one."""
    low, high = -1 / (points[-1] - mean), 1 / (mean - points[0])
    for _ in range(STEPS):
        middle = (low + high) / 2
        if low < middle < high and sum(
            share * (point - mean) / (1 + middle * (point - mean)) for point, share in zip(points, shares, strict=True)
        ) > 0:  # fmt: skip
            low = middle
        else:
            high = middle
    middle = (low + high) / 2
    return [share / (1 + middle * (point - mean)) for point, share in zip(points, shares, strict=True)]
