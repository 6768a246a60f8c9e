"""Ratings of players from the games between them: Bradley and Terry's model, fitted by Newton's method.

P(a beats b) = 1 / (1 + exp(-(s_a - s_b + advantage))), the advantage for who moves first; a draw is half a win for both. Strengths are
told against a reference player, whose own is 0 by definition. Standard errors come from the inverse of the observed information, so they are
those of the difference to the reference (Bradley and Terry, Biometrika 39, 1952; Hunter, Annals of Statistics 32, 2004).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

ELO_PER_NATURAL_UNIT = 400 / math.log(10)
NORMAL_95 = 1.959963984540054
TOLERANCE = 1e-10
MOST_STEPS = 100


class NoRating(ValueError):
    """The games do not determine ratings; the message says why."""


@dataclass(frozen=True)
class Pairing:
    """All games in which `first` moved first: its points (a draw is a half) of `games`."""

    first: str
    second: str
    points: float
    games: float


@dataclass(frozen=True)
class Rating:
    """In natural units (log odds) against the reference; `error` is the standard error, 0 for the reference itself."""

    strength: float
    error: float

    @property
    def elo(self) -> float:
        return self.strength * ELO_PER_NATURAL_UNIT

    @property
    def elo_error(self) -> float:
        return self.error * ELO_PER_NATURAL_UNIT

    @property
    def elo_interval(self) -> tuple[float, float]:
        """95 %, by the normal approximation."""
        return self.elo - NORMAL_95 * self.elo_error, self.elo + NORMAL_95 * self.elo_error


@dataclass(frozen=True)
class Ratings:
    players: Mapping[str, Rating]
    advantage: Rating | None  # of moving first, where it was fitted
    log_likelihood: float  # of the games, without the prior


def rate(pairings: Sequence[Pairing], reference: str, *, fit_advantage: bool = False, prior_draws: float = 0.0) -> Ratings:
    """Fit the model. `prior_draws` adds so many drawn games of each player against the reference, which keeps a player that has won or lost
    all its games finite; without it such games are refused, since their best rating is infinite. Raises NoRating."""
    names = sorted({name for pairing in pairings for name in (pairing.first, pairing.second)})
    _refuse(pairings, names, reference)
    free = {name: place for place, name in enumerate(name for name in names if name != reference)}
    width = len(free) + fit_advantage
    rows, points, games = _design(pairings, free, width, fit_advantage)
    real = len(rows)
    if prior_draws > 0:
        rows = np.vstack([rows, np.eye(width)[: len(free)]])
        points, games = np.append(points, [prior_draws / 2] * len(free)), np.append(games, [prior_draws] * len(free))
    elif not _is_connected(pairings, names):
        raise NoRating("a player, or a group of players, has won or lost all games against the others; give prior_draws")
    found, information = _newton(rows, points, games)
    try:
        errors = np.sqrt(np.diag(np.linalg.inv(information)))
    except np.linalg.LinAlgError as exc:
        raise NoRating("the games do not tell the strengths and the advantage apart") from exc
    rated = {name: Rating(float(found[place]), float(errors[place])) for name, place in free.items()}
    rated[reference] = Rating(0.0, 0.0)
    edge = rows[:real] @ found
    likelihood = points[:real] @ edge - games[:real] @ np.logaddexp(0.0, edge)
    advantage = Rating(float(found[-1]), float(errors[-1])) if fit_advantage else None
    return Ratings({name: rated[name] for name in names}, advantage, float(likelihood))


def _refuse(pairings: Sequence[Pairing], names: Sequence[str], reference: str) -> None:
    if reference not in names:
        raise NoRating(f"the reference {reference} has played no game")
    for pairing in pairings:
        if pairing.first == pairing.second:
            raise NoRating(f"{pairing.first} plays against itself")
        if not (math.isfinite(pairing.games) and 0 <= pairing.points <= pairing.games and pairing.games > 0):
            raise NoRating(f"{pairing.points:g} points of {pairing.games:g} games, {pairing.first} against {pairing.second}")
    if len(_reachable({name: _opponents(pairings, name) for name in names}, reference)) < len(names):
        raise NoRating("some players have met neither the reference nor anybody who has")


def _design(
    pairings: Sequence[Pairing], free: Mapping[str, int], width: int, fit_advantage: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rows = np.zeros((len(pairings), width))
    for row, pairing in zip(rows, pairings, strict=True):
        if pairing.first in free:
            row[free[pairing.first]] = 1
        if pairing.second in free:
            row[free[pairing.second]] = -1
        if fit_advantage:
            row[-1] = 1
    return rows, np.array([pairing.points for pairing in pairings]), np.array([pairing.games for pairing in pairings])


def _newton(rows: np.ndarray, points: np.ndarray, games: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Maximise the likelihood, which is concave; a step that does not raise it is halved. The maximum and the information there."""

    def likelihood(at: np.ndarray) -> float:
        edge = rows @ at
        return float(points @ edge - games @ np.logaddexp(0.0, edge))

    found = np.zeros(rows.shape[1])
    for _ in range(MOST_STEPS):
        expected = np.exp(-np.logaddexp(0.0, -(rows @ found)))
        gradient = rows.T @ (points - games * expected)
        information = rows.T @ (rows * (games * expected * (1 - expected))[:, None])
        if np.abs(gradient).max(initial=0.0) < TOLERANCE * max(1.0, games.sum()):
            return found, information
        try:
            step = np.linalg.solve(information, gradient)
        except np.linalg.LinAlgError as exc:
            raise NoRating("the games do not tell the strengths and the advantage apart") from exc
        before = likelihood(found)
        while likelihood(found + step) < before and np.abs(step).max() > TOLERANCE:
            step = step / 2
        found = found + step
    raise NoRating(f"no maximum within {MOST_STEPS} steps")


def _opponents(pairings: Sequence[Pairing], name: str) -> set[str]:
    met = {(pairing.first, pairing.second) for pairing in pairings}
    return {other for pair in met if name in pair for other in pair if other != name}


def _is_connected(pairings: Sequence[Pairing], names: Sequence[str]) -> bool:
    """Ford's condition: however the players are split in two, somebody of each part has points against somebody of the other."""
    beats: dict[str, set[str]] = {name: set() for name in names}
    for pairing in pairings:
        if pairing.points > 0:
            beats[pairing.first].add(pairing.second)
        if pairing.points < pairing.games:
            beats[pairing.second].add(pairing.first)
    beaten_by = {name: {other for other in names if name in beats[other]} for name in names}
    return all(len(_reachable(graph, names[0])) == len(names) for graph in (beats, beaten_by))


def _reachable(graph: Mapping[str, set[str]], start: str) -> set[str]:
    reached, waiting = {start}, [start]
    while waiting:
        fresh = graph[waiting.pop()] - reached
        reached |= fresh
        waiting.extend(fresh)
    return reached
