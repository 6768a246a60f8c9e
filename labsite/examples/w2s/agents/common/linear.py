"""A linear classifier as plain JSON: what it holds, how it is read and written, what it predicts and how that is scored."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from run_folder import JobError

SCHEMA = "w2s.linear.v1"


@dataclass(frozen=True)
class Model:
    """Weights over standardised features, and what they came from."""

    target: str
    features: list[str]
    mean: list[float]
    scale: list[float]
    weights: list[float]
    bias: float
    seed: int
    params: dict[str, Any]
    trained_on: dict[str, str]
    record_ids: list[str]

    def probabilities(self, features: np.ndarray) -> np.ndarray:
        standard = (features - np.array(self.mean)) / np.array(self.scale)
        return sigmoid(standard @ np.array(self.weights) + self.bias)

    def write(self, path: Path) -> None:
        path.write_text(json.dumps({"schema": SCHEMA, **asdict(self)}, indent=1, allow_nan=False) + "\n", encoding="utf-8")


def read_model(path: Path, name: str) -> Model:
    """The model at `path`, called `name` in messages. Raises JobError where it is none."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(content, dict) or content.pop("schema", None) != SCHEMA:
            raise JobError(f"{name} is no model of schema {SCHEMA}")
        model = Model(**content)
        names = (*model.features, *model.record_ids) if isinstance(model.features, list) and isinstance(model.record_ids, list) else (None,)
        if not all(isinstance(entry, str) for entry in names):
            raise JobError(f"{name}: features and record_ids must be lists of text")
        numbers = np.array([model.mean, model.scale, model.weights], dtype=float)
        if numbers.shape != (3, len(model.features)) or not np.isfinite([*numbers.ravel(), model.bias]).all() or not numbers[1].all():
            raise JobError(f"{name}: mean, scale and weights must be finite numbers, one for each feature")
    except OSError as exc:
        raise JobError(f"{name}: {exc.strerror}") from exc
    except (ValueError, TypeError, RecursionError) as exc:
        raise JobError(f"{name} is no model: {exc}") from exc
    return model


def sigmoid(values: np.ndarray) -> np.ndarray:
    # exp(-logaddexp(0, -x)) neither overflows nor loses small probabilities.
    return np.asarray(np.exp(-np.logaddexp(0.0, -values)))


def log_loss(probabilities: np.ndarray, labels: np.ndarray) -> float:
    """Mean negative log-likelihood in nats; probabilities are kept 1e-15 away from 0 and 1."""
    kept = np.clip(probabilities, 1e-15, 1 - 1e-15)
    return float(-np.mean(labels * np.log(kept) + (1 - labels) * np.log(1 - kept)))


def accuracy(probabilities: np.ndarray, labels: np.ndarray) -> float:
    return float(np.mean((probabilities >= 0.5) == (labels == 1)))


def binomial_error(share: float, samples: int) -> float:
    """Standard error of a share of `samples` independent records: sqrt(p (1 - p) / n)."""
    return float(np.sqrt(share * (1 - share) / samples))


def calibration_error(probabilities: np.ndarray, labels: np.ndarray, bins: int = 10) -> float:
    """Expected calibration error: mean |share of 1 - mean probability| over equal bins of probability, weighted by their records."""
    index = np.minimum((probabilities * bins).astype(int), bins - 1)
    gaps = [abs(labels[index == one].sum() - probabilities[index == one].sum()) for one in range(bins)]
    return float(np.sum(gaps) / len(labels))
