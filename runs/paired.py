"""Two evaluations of the same samples held against each other: the mean difference, and a paired bootstrap of it. Pure.

Each resample draws as many samples as there are, with replacement, and takes both scores of each: what makes a sample hard is the same for both,
so it leaves no trace in the difference. (Efron and Tibshirani, An Introduction to the Bootstrap, 1993; the percentile interval.)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

RESAMPLES = 2_000
MOST_PAIRS = 20_000  # with as many different differences; of fewer different ones any number
LARGEST = 1e100  # of a score: sums of more would be no finite numbers
SEED = 20_241_128  # the same two files give the same interval


@dataclass(frozen=True, slots=True)
class Difference:
    """`mean` of (candidate - champion) over `pairs` samples. `low` and `high` hold 95 % of the bootstrap; 95 % of it lie above
    `lower_bound` and 95 % below `upper_bound`, each taken alone."""

    pairs: int
    mean: float
    low: float
    high: float
    lower_bound: float
    upper_bound: float
    better: int
    worse: int

    @property
    def equal(self) -> int:
        return self.pairs - self.better - self.worse


class NotComparable(ValueError):
    """There is no difference to tell; the message is a clause for people."""


def difference(pairs: Sequence[tuple[float, float]], *, resamples: int = RESAMPLES) -> Difference:
    """Of finite (candidate, champion) scores. Raises NotComparable."""
    if not pairs:
        raise NotComparable("they have no sample in common")
    import numpy as np  # noqa: PLC0415  # 16 MB that every web worker would keep, and only comparisons need

    scores = np.asarray(pairs, dtype=float)
    if np.abs(scores).max() > LARGEST:
        raise NotComparable(f"a score is larger than {LARGEST:g}")
    differences = scores[:, 0] - scores[:, 1]
    values, counts = np.unique(differences, return_counts=True)
    means = _resampled(values, counts, len(differences), resamples)
    low, lower, upper, high = np.quantile(means, (0.025, 0.05, 0.95, 0.975))
    return Difference(
        pairs=len(differences),
        mean=float(differences.mean()),
        low=float(low),
        high=float(high),
        lower_bound=float(lower),
        upper_bound=float(upper),
        better=int((differences > 0).sum()),
        worse=int((differences < 0).sum()),
    )


def _resampled(values: "np.ndarray", counts: "np.ndarray", size: int, resamples: int) -> "np.ndarray":
    """Means of the resamples. Drawing how often each different value comes is the same as drawing samples one by one, and of scores that are
    right or wrong there are three different values however many samples."""
    import numpy as np  # noqa: PLC0415  # as above

    random = np.random.default_rng(SEED)
    if len(values) <= 1_000:
        return np.asarray(random.multinomial(size, counts / size, resamples) @ values / size)
    if size > MOST_PAIRS:
        raise NotComparable(
            f"{size:,} pairs with {len(values):,} different differences; {MOST_PAIRS:,} at most are held against each other"
        )
    each = np.repeat(values, counts)
    return np.array([each[random.integers(0, size, size)].mean() for _ in range(resamples)])
