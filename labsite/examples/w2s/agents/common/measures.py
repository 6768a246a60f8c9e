"""What is measured of predicted probabilities against labels of 0 and 1."""

import numpy as np


def sigmoid(values: np.ndarray) -> np.ndarray:
    # exp(-logaddexp(0, -x)) neither overflows nor loses small probabilities.
    return np.asarray(np.exp(-np.logaddexp(0.0, -values)))


def log_loss(probabilities: np.ndarray, labels: np.ndarray) -> float:
    """Mean negative log-likelihood in nats; probabilities are kept 1e-15 away from 0 and 1."""
    kept = np.clip(probabilities, 1e-15, 1 - 1e-15)
    return float(-np.mean(labels * np.log(kept) + (1 - labels) * np.log(1 - kept)))


def classes(probabilities: np.ndarray) -> np.ndarray:
    """The predicted class, 0.0 or 1.0; a tie is 1."""
    return np.asarray((probabilities >= 0.5).astype(float))


def accuracy(probabilities: np.ndarray, labels: np.ndarray) -> float:
    return float(np.mean(classes(probabilities) == labels))


def binomial_error(share: float, samples: int) -> float:
    """Standard error of a share of `samples` independent records: sqrt(p (1 - p) / n)."""
    return float(np.sqrt(share * (1 - share) / samples))


def above_chance(probabilities: np.ndarray, labels: np.ndarray) -> tuple[float, float]:
    """Balanced accuracy (the mean over both classes) less one half, and its standard error from both shares: 0 for whoever knows nothing."""
    rights = [classes(probabilities)[labels == label] == label for label in (0, 1)]
    shares = [float(right.mean()) for right in rights]
    error = np.sqrt(sum(binomial_error(share, len(right)) ** 2 for share, right in zip(shares, rights, strict=True))) / 2
    return sum(shares) / 2 - 0.5, float(error)


def calibration_error(probabilities: np.ndarray, labels: np.ndarray, bins: int = 10) -> float:
    """Expected calibration error: mean |share of 1 - mean probability| over equal bins of probability, weighted by their records."""
    index = np.minimum((probabilities * bins).astype(int), bins - 1)
    gaps = [abs(labels[index == one].sum() - probabilities[index == one].sum()) for one in range(bins)]
    return float(np.sum(gaps) / len(labels))
