"""Learning from positions: the loss of a batch, its gradient by hand, and Adam (Kingma and Ba, 2015)."""

from dataclasses import dataclass

import numpy as np
from network import Weights, columns, forward, with_constants
from positions import Positions


@dataclass(frozen=True)
class Losses:
    """Means over the positions of a batch: cross-entropy of moves in nats, squared errors of value and of owners."""

    policy: float
    value: float
    owners: float

    def total(self, value_weight: float, owner_weight: float) -> float:
        return self.policy + value_weight * self.value + owner_weight * self.owners


def symmetries(size: int) -> np.ndarray:
    """The eight symmetries of the board as permutations of its points, the identity first."""
    grid = np.arange(size * size).reshape(size, size)
    return np.array([np.rot90(side, turns).ravel() for side in (grid, grid.T) for turns in range(4)])


def turned(batch: Positions, permutation: np.ndarray) -> Positions:
    """The same positions after a symmetry of the board."""
    visits = np.concatenate([batch.visits[:, :-1][:, permutation], batch.visits[:, -1:]], axis=1)
    return Positions(batch.stones[:, :, permutation], batch.black_to_move, visits, batch.owners[:, permutation], batch.outcome, batch.game)


def losses(weights: Weights, batch: Positions) -> Losses:
    found = forward(weights, with_constants(batch.stones, batch.black_to_move))
    return _losses(_log_shares(found.logits), found.values, found.owners, batch)


def gradient(weights: Weights, batch: Positions, value_weight: float, owner_weight: float) -> tuple[Weights, Losses]:
    """The gradient of `Losses.total` by each weight, and the losses."""
    found = forward(weights, with_constants(batch.stones, batch.black_to_move))
    boards, points = batch.owners.shape
    log_shares = _log_shares(found.logits)
    by_logits = (np.exp(log_shares) - batch.visits) / boards
    by_value = value_weight * 2 * (found.values - batch.outcome) * (1 - found.values**2) / boards
    by_owners = owner_weight * 2 * (found.owners - batch.owners) / (boards * points) + by_value[:, None] * weights.value[0]
    by_heads = np.stack([by_logits[:, :points], by_owners * (1 - found.owners**2)], axis=2).reshape(boards * points, 2)
    mean_hidden = found.hidden_second.reshape(boards, points, -1).mean(axis=1)

    by_second = by_heads @ weights.heads.T
    by_second += np.repeat(by_logits[:, points:] * weights.passing[:-1] / points, points, axis=0)
    by_second *= found.hidden_second > 0
    by_first = _back_through(by_second, found.columns_second.shape, weights.second, boards, points) * (found.hidden_first > 0)
    passing = np.append(mean_hidden.T @ by_logits[:, points], by_logits[:, points].sum())
    exact = Weights(
        found.columns_first.T @ by_first, by_first.sum(axis=0), found.columns_second.T @ by_second, by_second.sum(axis=0),
        found.hidden_second.T @ by_heads, by_heads.sum(axis=0), passing, found.value_inputs.T @ by_value,
    )  # fmt: skip
    return exact, _losses(log_shares, found.values, found.owners, batch)


class Adam:
    """Steps along a gradient, each weight by its own scale; `l2` draws weights to 0 apart from that (Loshchilov and Hutter, 2019)."""

    def __init__(self, weights: Weights, rate: float, l2: float) -> None:
        self._weights, self._rate, self._l2, self._steps = weights, rate, l2, 0
        self._mean = {key: np.zeros_like(array) for key, array in weights.arrays().items()}
        self._square = {key: np.zeros_like(array) for key, array in weights.arrays().items()}

    def step(self, by: Weights) -> None:
        """Change the weights in place."""
        self._steps += 1
        scale = self._rate * (1 - 0.999**self._steps) ** 0.5 / (1 - 0.9**self._steps)
        for key, array in self._weights.arrays().items():
            slope = getattr(by, key)
            self._mean[key] += 0.1 * (slope - self._mean[key])
            self._square[key] += 0.001 * (slope**2 - self._square[key])
            array -= scale * self._mean[key] / (np.sqrt(self._square[key]) + 1e-8) + self._rate * self._l2 * array


def _back_through(by_output: np.ndarray, shape: tuple[int, ...], layer: np.ndarray, boards: int, points: int) -> np.ndarray:
    """The gradient by a convolution's input: the same convolution with its window turned round and its channels exchanged."""
    outputs = by_output.shape[1]
    turned_round = layer.reshape(9, shape[1] // 9, outputs)[::-1].transpose(0, 2, 1).reshape(9 * outputs, -1)
    return columns(by_output.reshape(boards, points, outputs), round(points**0.5)) @ turned_round


def _log_shares(logits: np.ndarray) -> np.ndarray:
    shifted = logits - logits.max(axis=1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))


def _losses(log_shares: np.ndarray, values: np.ndarray, owners: np.ndarray, batch: Positions) -> Losses:
    policy = -(batch.visits * log_shares).sum(axis=1).mean()
    return Losses(float(policy), float(((values - batch.outcome) ** 2).mean()), float(((owners - batch.owners) ** 2).mean()))
