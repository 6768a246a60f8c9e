"""Ratings of players from the games between them: Bradley and Terry's model, by maximum likelihood. Pure.

P(a beats b) = 1 / (1 + exp(s_b - s_a)); a draw is half a win for both. Strengths are told against a reference, whose own is 0 by definition. Standard
errors are those of the difference to it, from the inverse of the observed information.

Bradley and Terry, Biometrika 39 (1952); Ford, American Mathematical Monthly 64 (1957), for when there is a maximum; Hunter, Annals of Statistics 32
(2004). The likelihood is concave in the strengths, so that Newton's steps, halved where one would not raise it, end at its one maximum. The arena of
the Go laboratory rates by the same model; its code travels to the pools and can import nothing of this.
"""

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

P = TypeVar("P", bound=Hashable)

ELO_PER_NATURAL_UNIT = 400 / math.log(10)
NORMAL_975 = 1.959963984540054
TOLERANCE = 1e-10
MOST_STEPS = 100
PRIOR_GAMES = 1.0


@dataclass(frozen=True, slots=True)
class Met(Generic[P]):
    """What came of all games between two: the points of `first` (a draw is a half) of `games`."""

    first: P
    second: P
    points: float
    games: float


@dataclass(frozen=True, slots=True)
class Rating:
    """Against the reference, in Elo; `error` is the standard error, 0 for the reference itself."""

    elo: float
    error: float

    @property
    def low(self) -> float:
        """From here to `high`: the 95 % interval, by the normal approximation."""
        return self.elo - NORMAL_975 * self.error

    @property
    def high(self) -> float:
        return self.elo + NORMAL_975 * self.error


TOO_FAR_APART = "The results are too far apart to be rated."


@dataclass(frozen=True, slots=True)
class Ratings(Generic[P]):
    """`has_prior`: one drawn game was added to each two that met, since somebody, or some group, has won or lost all games against the others."""

    of: Mapping[P, Rating]
    has_prior: bool


def rate(met: Sequence[Met[P]], reference: P) -> Ratings[P]:
    """Ratings of all who have met the reference, or somebody who has; of others nothing can be said against it, and they are left out.

    ValueError where a result is none: more points than games, no games, a player against itself; and where results are so far apart that the
    numbers of the machine cannot tell them (then there is no finite error either)."""
    for each in met:
        if each.first == each.second or not (math.isfinite(each.games) and 0 <= each.points <= each.games and each.games > 0):
            raise ValueError(f"{each.points:g} points of {each.games:g} games, {each.first} against {each.second}")
    import numpy as np  # noqa: PLC0415  # 16 MB that every web worker would keep, and only an arena needs

    known = connected(met, reference)
    inside = [each for each in met if each.first in known]
    has_prior = not _has_maximum(inside, known, reference)
    if has_prior:
        inside = [Met(each.first, each.second, each.points + PRIOR_GAMES / 2, each.games + PRIOR_GAMES) for each in inside]
    free = {player: place for place, player in enumerate(player for player in known if player != reference)}
    rows = np.zeros((len(inside), len(free)))
    for row, each in zip(rows, inside, strict=True):
        for player, sign in ((each.first, 1), (each.second, -1)):
            if player in free:
                row[free[player]] = sign
    points, games = np.array([each.points for each in inside]), np.array([each.games for each in inside])
    try:
        with np.errstate(all="ignore"):
            strengths, information = _maximum(rows, points, games)
            errors = np.sqrt(np.diag(np.linalg.inv(information))) if free else np.zeros(0)
    except np.linalg.LinAlgError as singular:
        raise ValueError(TOO_FAR_APART) from singular
    if not (np.isfinite(strengths).all() and np.isfinite(errors).all()):
        raise ValueError(TOO_FAR_APART)
    rated = {
        player: Rating(float(strengths[place]) * ELO_PER_NATURAL_UNIT, float(errors[place]) * ELO_PER_NATURAL_UNIT)
        for player, place in free.items()
    }
    return Ratings({reference: Rating(0.0, 0.0), **rated}, has_prior)


def connected(met: Iterable[Met[P]], start: P) -> list[P]:
    """Who has met `start`, or somebody who has; itself the first."""
    pairs = [(each.first, each.second) for each in met]
    return _reached([*pairs, *((second, first) for first, second in pairs)], start)


def _maximum(rows: Any, points: Any, games: Any) -> tuple[Any, Any]:
    """Where the likelihood is largest, and the information there."""
    import numpy as np  # noqa: PLC0415  # as above

    def likelihood(at: Any) -> float:
        edge = rows @ at
        return float(points @ edge - games @ np.logaddexp(0.0, edge))

    found = np.zeros(rows.shape[1])
    information = np.zeros((rows.shape[1], rows.shape[1]))
    for _ in range(MOST_STEPS):
        expected = np.exp(-np.logaddexp(0.0, -(rows @ found)))
        gradient = rows.T @ (points - games * expected)
        information = rows.T @ (rows * (games * expected * (1 - expected))[:, None])
        if np.abs(gradient).max(initial=0.0) < TOLERANCE * max(1.0, float(games.sum())):
            break
        step, before = np.linalg.solve(information, gradient), likelihood(found)
        while likelihood(found + step) < before and np.abs(step).max() > TOLERANCE:
            step = step / 2
        found = found + step
    return found, information


def _has_maximum(met: Iterable[Met[P]], players: Iterable[P], start: P) -> bool:
    """Ford's condition: however the players are split in two, somebody of each part has points against somebody of the other."""
    beats = [(each.first, each.second) for each in met if each.points > 0]
    beats += [(each.second, each.first) for each in met if each.points < each.games]
    count = len(list(players))
    return len(_reached(beats, start)) == count == len(_reached(((loser, winner) for winner, loser in beats), start))


def _reached(pairs: Iterable[tuple[P, P]], start: P) -> list[P]:
    """Who is reached from `start`, itself the first; in the order in which they are."""
    next_of: dict[P, list[P]] = {}
    for one, other in pairs:
        next_of.setdefault(one, []).append(other)
    reached, waiting = {start: None}, [start]
    while waiting:
        for other in next_of.get(waiting.pop(), ()):
            if other not in reached:
                reached[other] = None
                waiting.append(other)
    return list(reached)
