"""Is one player stronger than another, with stated error rates? Wald's sequential probability ratio test of two strengths in Elo. Pure.

H0: the first player is `elo0` stronger, H1: it is `elo1` stronger. Draws, and openings that suit one colour, are unknowns of no interest: the
likelihood is the largest that any distribution of outcomes with the expected score of H0, or H1, gives (the generalised test). Outcomes are of pairs
of games with colours swapped, by the first player's points: 0, 1/2, 1, 3/2, 2; of one opening and both colours, only pairs are independent.

Wald, Sequential Analysis (1947); Li, Liu and Ying, Generalized sequential probability ratio test for separate families of hypotheses, Sequential
Analysis 33 (2014). Error rates are those of Wald's bounds, met from below but for the step by which a bound is passed. The arena of the Go laboratory
plays by the same test; its code travels to the pools and can import nothing of this.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

ELO_SPREAD = 400.0
STEPS = 200  # of bisection
UNSEEN = 1e-3  # times that an outcome is taken to have come that never came, so that a likelihood is told from the first game on
OUTCOMES = 5
MOST_ELO, LEAST_RATE, MOST_RATE = 1000, 0.0001, 0.4  # that may be asked


@dataclass(frozen=True, slots=True)
class Answer:
    """`accepted` is "H0", "H1" or, where no bound was passed, empty; `pairs` and `ratio` are those of that moment."""

    accepted: str
    ratio: float
    pairs: int
    points: float
    low: float
    high: float


def answer(batches: Iterable[Sequence[int]], elo0: float, elo1: float, alpha: float, beta: float) -> Answer:
    """Of batches in the order in which they were played: the first bound that is passed decides, whatever comes after it."""
    *_, last = course(batches, elo0, elo1, alpha, beta)
    return last


def course(batches: Iterable[Sequence[int]], elo0: float, elo1: float, alpha: float, beta: float) -> Iterator[Answer]:
    """What the test says before any batch, and after each until one decides."""
    low, high = math.log(beta / (1 - alpha)), math.log((1 - beta) / alpha)
    counts = [0] * OUTCOMES
    yield Answer("", 0.0, 0, 0.0, low, high)
    for batch in batches:
        counts = [one + more for one, more in zip(counts, batch, strict=True)]
        ratio = log_likelihood_ratio(counts, elo0, elo1)
        accepted = "H0" if ratio <= low else "H1" if ratio >= high else ""
        yield Answer(accepted, ratio, sum(counts), sum(place * count for place, count in enumerate(counts)) / 2, low, high)
        if accepted:
            return


def expected_score(elo: float) -> float:
    """Share of points of a player who is `elo` stronger."""
    return 1 / (1 + 10 ** (-elo / ELO_SPREAD))


def log_likelihood_ratio(outcomes: Sequence[float], elo0: float, elo1: float) -> float:
    """Of H1 against H0, natural logarithm. `outcomes`: how often each came, from no point to all, evenly spaced; 0 where none came."""
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
        weights = [1 + middle * (point - mean) for point in points]
        is_low = sum(share * (point - mean) / weight for share, point, weight in zip(shares, points, weights, strict=True)) > 0
        if low < middle < high and is_low:
            low = middle
        else:
            high = middle
    middle = (low + high) / 2
    return [share / (1 + middle * (point - mean)) for point, share in zip(points, shares, strict=True)]
