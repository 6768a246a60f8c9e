"""The weak teacher's training: logistic regression by stochastic gradient descent, on the few columns that it may see."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from classifiers import Linear, standardise
from measures import sigmoid
from run_folder import Job, JobError

PARAMETERS = ("features", "learning_rate", "epochs", "l2", "batch_size")
Seed = int | list[int]


@dataclass(frozen=True)
class TeacherSettings:
    features: list[str]
    learning_rate: float
    epochs: int
    l2: float
    batch_size: int


def read_teacher(job: Job, params: dict[str, Any] | None = None) -> TeacherSettings:
    """The settings among the job's parameters, or among those of another run. Raises JobError."""
    asked = job if params is None else job.asking(params)
    names = asked.params.get("features", ["mean_texture", "mean_smoothness"])
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names) or len(set(names)) != len(names):
        raise JobError("parameter features must be a list of different column names, at least one")
    return TeacherSettings(
        names, asked.number("learning_rate", 0.05, 1e-6, 10), asked.whole("epochs", 40, 1, 10_000), asked.number("l2", 0.001, 0, 1),
        asked.whole("batch_size", 16, 1, 100_000),
    )  # fmt: skip


def epochs_of(settings: TeacherSettings, rows: np.ndarray, labels: np.ndarray, seed: Seed) -> Iterator[Linear]:
    """Minimise log loss plus l2/2 · |weights|², one pass over the shuffled records an epoch; the first is the random start.

    Ends with a classifier that is not finite where training diverges.
    """
    mean, scale = standardise(rows)
    standard = (rows - mean) / scale
    random = np.random.default_rng(seed)
    weights, bias = random.normal(0.0, 0.5, rows.shape[1]), 0.0
    yield Linear(mean, scale, weights, bias)
    for _ in range(settings.epochs):
        order = random.permutation(len(standard))
        for start in range(0, len(order), settings.batch_size):
            part = order[start : start + settings.batch_size]
            with np.errstate(all="ignore"):
                gap = sigmoid(standard[part] @ weights + bias) - labels[part]
                weights = weights - settings.learning_rate * (standard[part].T @ gap / len(part) + settings.l2 * weights)
                bias = bias - settings.learning_rate * float(gap.mean())
        yield Linear(mean, scale, weights, bias)
        if not np.isfinite([*weights, bias]).all():
            return
