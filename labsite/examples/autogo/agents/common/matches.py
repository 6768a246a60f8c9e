"""What matches are played under, read from a run's parameters, and the words for how they went."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import sgf
from game import Game
from go_board import LARGEST, SMALLEST, Board
from network import Weights
from play import Match, game, play_all
from run_folder import Job, JobError
from search import Settings

Mover = Callable[[Board, Game], int]
"""Picks a move for the side to move; is told the game so far too."""


def read_match(job: Job, *, size: int | None = None, simulations: int = 32, random_moves: int = 6) -> Match:
    """The match of the parameters size (where none is given), komi, simulations, exploration, random_moves, move_cap, play_on. Raises JobError."""
    size = size or job.whole("size", 5, SMALLEST, LARGEST)
    settings = Settings(
        simulations=job.whole("simulations", simulations, 1, 10_000),
        exploration=job.number("exploration", 1.5, 0, 100),
        komi=job.number("komi", 0.5, -LARGEST * LARGEST, LARGEST * LARGEST),
        move_cap=job.whole("move_cap", 0, 0, 1000) or 6 * size * size,
        play_on=yes(job, "play_on", True),
    )
    return Match(size, settings, job.whole("random_moves", random_moves, 0, 1000))


def yes(job: Job, name: str, default: bool) -> bool:
    """A parameter that is true or false. Raises JobError."""
    value = job.params.get(name, default)
    if not isinstance(value, bool):
        raise JobError(f"parameter {name} is {value!r}; it must be true or false")
    return value


def with_noise(match: Match, noise: float, alpha: float) -> Match:
    return replace(match, settings=replace(match.settings, noise=noise, noise_alpha=alpha))


def play_pair(match: Match, first: Weights, second: Weights, games: int, seed: Sequence[int]) -> list[Game]:
    """Games between two networks: the first has Black in those of even number."""
    pairs = [(first, second) if number % 2 == 0 else (second, first) for number in range(games)]
    started = ((game(match, np.random.default_rng([*seed, number])), pair) for number, pair in enumerate(pairs))
    return [played for _, played in sorted(play_all(started), key=lambda numbered: numbered[0])]


def play_movers(match: Match, black: Mover, white: Mover) -> Game:
    """One game between players that are asked move by move. Raises IllegalMove."""
    board, played = Board(match.size), Game(match.size, match.settings.komi)
    while not board.is_over and board.moves < match.settings.move_cap:
        move = (black, white)[board.turn](board.copy(), played)
        played.play(board, move)
    played.end(board)
    return played


def points_of_first(games: Sequence[Game]) -> float:
    """Points of the player who has Black in the games of even number; a draw is a half."""
    return sum(played.black_points if number % 2 == 0 else 1 - played.black_points for number, played in enumerate(games))


def share_error(points: float, games: int) -> float:
    """Standard error of a share of points. One win and one loss are added, so that it is not 0 where all games went one way."""
    share = (points + 1) / (games + 2)
    return float(np.sqrt(share * (1 - share) / (games + 2)))


def write_games(path: Path, named: Iterable[tuple[Game, str, str]]) -> None:
    """Games with the names of Black and White as one SGF collection."""
    with path.open("w", encoding="utf-8") as file:
        for played, black, white in named:
            said = f"Not over after {len(played.moves)} moves, the move cap; scored as it stood." if played.capped else ""
            record = sgf.Record(played.size, played.komi, tuple(played.moves), sgf.result_of(played.score), black, white, said)
            file.write(sgf.write(record))


def note_capped(job: Job, games: Sequence[Game]) -> None:
    if capped := sum(played.capped for played in games):
        job.event("note", text=f"{capped} of {len(games)} games were not over at the move cap; they are scored as they stood.")
