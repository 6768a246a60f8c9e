"""Performance gap recovered: how much of the way from a weak teacher to the ceiling a student has gone, and how sure that is.

The measure is that of Burns et al., Weak-to-strong generalization, 2023 (arXiv:2312.09390), section 3. Every array holds, for each split
(row) and each held-out record (column), whether it was told apart rightly.
"""

from dataclasses import dataclass

import numpy as np

QUANTILES = (0.025, 0.975)


@dataclass(frozen=True)
class Estimate:
    """A value with the interval that holds 95 % of its bootstrap, and the bootstrap's standard deviation."""

    value: float
    low: float
    high: float
    error: float

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


def recovered(weak: float, student: float, ceiling: float) -> float:
    """(student - weak) / (ceiling - weak): 0 where the student is as good as its teacher, 1 where it reaches the ceiling."""
    return (student - weak) / (ceiling - weak) if ceiling != weak else float("nan")


def gap_recovered(weak: np.ndarray, student: np.ndarray, ceiling: np.ndarray, *, resamples: int, random: np.random.Generator) -> Estimate:
    """Of the mean accuracies over all splits and records. Resampled are splits and records alike, each with replacement."""
    draws = _draws(weak.shape, resamples, random)
    means = [_means(rights, draws) for rights in (weak, student, ceiling)]
    gaps = means[2] - means[0]
    return _estimate(recovered(weak.mean(), student.mean(), ceiling.mean()), ((means[1] - means[0])[gaps > 0]) / gaps[gaps > 0])


def above_chance(student: np.ndarray, labels: np.ndarray, *, resamples: int, random: np.random.Generator) -> Estimate:
    """Balanced accuracy (the mean over both classes) less one half: 0 for whoever knows nothing, whichever class they prefer."""
    draws = _draws(student.shape, resamples, random)
    ones, zeros = (_means(student, draws, labels == label) for label in (1, 0))
    value = (student[:, labels == 1].mean() + student[:, labels == 0].mean()) / 2 - 0.5
    return _estimate(value, (ones + zeros) / 2 - 0.5)


def _estimate(value: float, resampled: np.ndarray) -> Estimate:
    low, high = np.quantile(resampled, QUANTILES)
    return Estimate(float(value), float(low), float(high), float(resampled.std(ddof=1)))


def _draws(shape: tuple[int, ...], resamples: int, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """How often each split, and each record, is drawn in each resample."""
    splits, records = shape
    return random.multinomial(splits, [1 / splits] * splits, resamples), random.multinomial(records, [1 / records] * records, resamples)


def _means(rights: np.ndarray, draws: tuple[np.ndarray, np.ndarray], chosen: np.ndarray | None = None) -> np.ndarray:
    """The mean of each resample, over the chosen records."""
    splits, records = draws
    records = records if chosen is None else records * chosen
    weight = splits.sum(axis=1) * records.sum(axis=1)
    return np.einsum("bs,sr,br->b", splits, rights.astype(float), records, optimize=True) / np.maximum(weight, 1)
