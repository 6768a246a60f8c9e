"""Two families of strong students. Both see every column; each takes labels of 0 and 1, and then some rounds in which it trusts itself."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from classifiers import Classifier, Linear, Mixture, standardise
from measures import classes, sigmoid
from run_folder import Job, JobError

NEWTON_STEPS = 100


@dataclass(frozen=True)
class LogisticSettings:
    """`own_share`: how much of a label is the student's own prediction of the round before."""

    l2: float
    rounds: int
    own_share: float


@dataclass(frozen=True)
class MixtureSettings:
    """`components`: principal axes that are kept; `floor`: variance added along each of them; `own_share` as above."""

    components: int
    rounds: int
    own_share: float
    floor: float


Settings = LogisticSettings | MixtureSettings
PARAMETERS = {"logistic": ("l2", "rounds", "own_share"), "mixture": ("components", "rounds", "own_share", "floor")}


def read_settings(job: Job, family: str, params: dict[str, Any] | None = None) -> Settings:
    """The settings of a family among the job's parameters, or among those of another run. Raises JobError."""
    asked = job if params is None else job.asking(params)
    if family == "logistic":
        return LogisticSettings(asked.number("l2", 0.1, 0.001, 100), asked.whole("rounds", 5, 0, 200), asked.number("own_share", 0.5, 0, 1))
    return MixtureSettings(
        asked.whole("components", 2, 1, 30), asked.whole("rounds", 30, 0, 500), asked.number("own_share", 0.9, 0, 1),
        asked.number("floor", 0.1, 0.001, 100),
    )  # fmt: skip


def with_truth(settings: Settings) -> Settings:
    """The same student where labels are true: there is nothing in them to mend, so it takes no rounds of its own. This is the ceiling."""
    return replace(settings, rounds=0)


def rounds_of(settings: Settings, rows: np.ndarray, labels: np.ndarray) -> Iterator[Classifier]:
    """The student after its first training, and after each of its rounds. Raises JobError where the labels hold one class alone."""
    if labels.min() == labels.max():
        raise JobError(f"all {len(labels)} labels are {labels[0]:g}; there is nothing to tell apart")
    return _logistic(settings, rows, labels) if isinstance(settings, LogisticSettings) else _mixture(settings, rows, labels)


def last_of(settings: Settings, rows: np.ndarray, labels: np.ndarray) -> Classifier:
    *_, last = rounds_of(settings, rows, labels)
    return last


def _logistic(settings: LogisticSettings, rows: np.ndarray, labels: np.ndarray) -> Iterator[Linear]:
    """Ridge logistic regression; each round mixes its own classes into the labels, so that it may overrule what fits nothing else."""
    mean, scale = standardise(rows)
    standard = np.column_stack([(rows - mean) / scale, np.ones(len(rows))])
    wanted = labels
    for number in range(settings.rounds + 1):
        weights = _newton(standard, wanted, settings.l2)
        yield Linear(mean, scale, weights[:-1], float(weights[-1]))
        if number < settings.rounds:
            wanted = (1 - settings.own_share) * labels + settings.own_share * classes(sigmoid(standard @ weights))


def _newton(rows: np.ndarray, wanted: np.ndarray, l2: float) -> np.ndarray:
    """Minimise mean log loss plus l2/2 · |weights|², the last weight (the bias) free, by Newton's method from 0."""
    weights = np.zeros(rows.shape[1])
    penalty = np.full(rows.shape[1], l2)
    penalty[-1] = 1e-8
    for _ in range(NEWTON_STEPS):
        found = sigmoid(rows @ weights)
        slope = rows.T @ (found - wanted) / len(rows) + penalty * weights
        curve = (rows * (found * (1 - found))[:, None]).T @ rows / len(rows) + np.diag(penalty)
        step = np.linalg.solve(curve, slope)
        weights = weights - step
        if not np.isfinite(weights).all():
            break
        if np.abs(step).max() < 1e-9:
            return weights
    raise JobError(f"no solution was found within {NEWTON_STEPS} steps; raise l2 above {l2:g}")


def _mixture(settings: MixtureSettings, rows: np.ndarray, labels: np.ndarray) -> Iterator[Mixture]:
    """One Gaussian a class on the first principal axes; each round is one of expectation and maximisation, begun at the labels and tied to them:
    without that tie it would find the two clouds in the data whatever the labels say."""
    mean, scale = standardise(rows)
    standard = (rows - mean) / scale
    if settings.components > standard.shape[1]:
        raise JobError(f"components is {settings.components}; there are {standard.shape[1]} columns")
    axes = np.linalg.svd(standard, full_matrices=False)[2][: settings.components].T
    places, belongs = standard @ axes, labels
    for number in range(settings.rounds + 1):
        parts = [_cloud(places, share, settings.floor) for share in (1 - belongs, belongs)]
        fitted = Mixture(mean, scale, axes, *(np.array(values) for values in zip(*parts, strict=True)))
        yield fitted
        if number < settings.rounds:
            belongs = (1 - settings.own_share) * labels + settings.own_share * fitted.probabilities(rows)


def _cloud(places: np.ndarray, belongs: np.ndarray, floor: float) -> tuple[float, np.ndarray, np.ndarray]:
    """Share, centre and covariance of the records, each counted as much as it belongs."""
    weight = belongs.sum()
    if weight < 1:
        raise JobError("a class has lost all of its records; take fewer rounds or raise floor")
    centre = belongs @ places / weight
    away = places - centre
    covariance = (away * belongs[:, None]).T @ away / weight + floor * np.eye(places.shape[1])
    return weight / len(places), centre, covariance
