"""What a model computes: probabilities of class 1 from measured features, by a line or by two clouds of points."""

from dataclasses import dataclass

import numpy as np
from measures import sigmoid


@dataclass(frozen=True)
class Linear:
    """Weights over standardised features."""

    mean: np.ndarray
    scale: np.ndarray
    weights: np.ndarray
    bias: float

    def probabilities(self, features: np.ndarray) -> np.ndarray:
        return sigmoid((features - self.mean) / self.scale @ self.weights + self.bias)

    def refuse(self, features: int) -> None:
        """Raises ValueError where the parts do not fit each other."""
        _refuse_shapes({"mean": (self.mean, (features,)), "scale": (self.scale, (features,)), "weights": (self.weights, (features,))})
        if not self.scale.all() or not np.isfinite(self.bias):
            raise ValueError("scale must not be 0, bias must be finite")


@dataclass(frozen=True)
class Mixture:
    """Two Gaussians, of class 0 and of class 1, on the principal axes of standardised features; `shares` are their shares of all records."""

    mean: np.ndarray
    scale: np.ndarray
    axes: np.ndarray
    shares: np.ndarray
    centres: np.ndarray
    covariances: np.ndarray

    def probabilities(self, features: np.ndarray) -> np.ndarray:
        places = (features - self.mean) / self.scale @ self.axes
        logs = []
        for share, centre, covariance in zip(self.shares, self.centres, self.covariances, strict=True):
            away = places - centre
            distance = np.einsum("ij,ij->i", away @ np.linalg.inv(covariance), away)
            logs.append(np.log(share) - 0.5 * np.linalg.slogdet(covariance)[1] - 0.5 * distance)
        return sigmoid(logs[1] - logs[0])

    def refuse(self, features: int) -> None:
        """Raises ValueError where the parts do not fit each other."""
        axes = self.axes.shape[1] if self.axes.ndim == 2 else 0
        _refuse_shapes(
            {
                "mean": (self.mean, (features,)), "scale": (self.scale, (features,)), "axes": (self.axes, (features, axes)),
                "shares": (self.shares, (2,)), "centres": (self.centres, (2, axes)), "covariances": (self.covariances, (2, axes, axes)),
            }
        )  # fmt: skip
        if not self.scale.all() or not axes or self.shares.min() <= 0 or np.linalg.eigvalsh(self.covariances).min() <= 0:
            raise ValueError("scale must not be 0, shares and covariances must be positive")


Classifier = Linear | Mixture


def standardise(features: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and spread of each column; a column that does not vary has the spread 1."""
    spread = features.std(axis=0)
    return features.mean(axis=0), np.where(spread > 0, spread, 1.0)


def _refuse_shapes(parts: dict[str, tuple[np.ndarray, tuple[int, ...]]]) -> None:
    wrong = [name for name, (array, shape) in parts.items() if array.shape != shape or not np.isfinite(array).all()]
    if wrong:
        raise ValueError(f"{', '.join(wrong)}: finite numbers, one for each feature, are wanted")
