"""How fast Go is played: `make bench BENCH=go_speed ARGS=[seconds]`, 10 for each figure where nothing is said.

9x9 random playouts a second and 5x5 simulations of the tree search a second, each beside a plain numpy loop of the same rules: the board as
an array, chains found by growing them, every earlier position kept as bytes, one position judged at a time. On one core. Runs in the pool's
Python, LABSITE_POOL_PYTHON, since labsite's own has no numpy.
"""

import os
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

LABSITE = Path(__file__).resolve().parents[2]
AGENTS = LABSITE / "labsite" / "examples" / "autogo" / "agents"
RUN_FOLDER = LABSITE / "labsite" / "examples" / "w2s" / "agents" / "common"
if not os.environ.get("GO_SPEED"):
    python = os.environ.get("LABSITE_POOL_PYTHON") or "python3"
    os.execvpe(python, [python, *sys.argv], {**os.environ, "GO_SPEED": "1", "OMP_NUM_THREADS": "1"})  # noqa: S606  # itself, a list

sys.path[:0] = [str(AGENTS / "common"), str(RUN_FOLDER)]
import numpy as np  # noqa: E402  # after the way to it is known, as everything below
from go_board import Board  # type: ignore[import-not-found]  # noqa: E402  # a module of the bundle
from network import forward, random_weights, with_constants  # type: ignore[import-not-found]  # noqa: E402  # a module of the bundle
from play import Match, game, play_all  # type: ignore[import-not-found]  # noqa: E402  # a module of the bundle
from playout import play_out  # type: ignore[import-not-found]  # noqa: E402  # a module of the bundle
from search import Settings, choose, search  # type: ignore[import-not-found]  # noqa: E402  # a module of the bundle

SIMULATIONS, BATCH = 32, 32
Array = Any


def grow(points: Array) -> Array:
    """The points and all that are next to one of them."""
    grown = points.copy()
    grown[1:] |= points[:-1]
    grown[:-1] |= points[1:]
    grown[:, 1:] |= points[:, :-1]
    grown[:, :-1] |= points[:, 1:]
    return grown


def flood(start: Array, within: Array) -> Array:
    reached = start & within
    while True:
        grown = grow(reached) & within
        if (grown == reached).all():
            return reached
        reached = grown


class PlainBoard:
    """The same rules on an array: 1 for Black, -1 for White; `sign` is the side to move."""

    def __init__(self, size: int) -> None:
        self.grid = np.zeros((size, size), np.int8)
        self.sign, self.passes, self.moves = 1, 0, 0
        self.seen = {self.grid.tobytes()}
        self.geometry = SimpleNamespace(pass_move=size * size)

    def copy(self) -> "PlainBoard":
        twin = PlainBoard(len(self.grid))
        twin.grid, twin.sign, twin.passes, twin.moves, twin.seen = self.grid.copy(), self.sign, self.passes, self.moves, set(self.seen)
        return twin

    @property
    def turn(self) -> int:
        return 0 if self.sign == 1 else 1

    @property
    def is_over(self) -> bool:
        return self.passes >= 2

    def chain(self, point: tuple[int, int]) -> tuple[Array, int]:
        """The chain at a point, and how many liberties it has."""
        start = np.zeros(self.grid.shape, bool)
        start[point] = True
        stones = flood(start, self.grid == self.grid[point])
        return stones, int((grow(stones) & (self.grid == 0)).sum())

    def after(self, move: int) -> Array | None:
        """The stones after a move, None where it is illegal."""
        row, column = point = divmod(move, len(self.grid))
        if self.grid[point]:
            return None
        before = self.grid
        self.grid = before.copy()
        try:
            self.grid[point] = self.sign
            for beside in ((row + 1, column), (row - 1, column), (row, column + 1), (row, column - 1)):
                if min(beside) >= 0 and max(beside) < len(before) and self.grid[beside] == -self.sign:
                    stones, liberties = self.chain(beside)
                    if not liberties:
                        self.grid[stones] = 0
            return None if not self.chain(point)[1] or self.grid.tobytes() in self.seen else self.grid
        finally:
            self.grid = before

    def legal_points(self) -> list[int]:
        return [move for move in range(self.grid.size) if self.after(move) is not None]

    def play_legal(self, move: int) -> None:
        if move == self.geometry.pass_move:
            self.passes += 1
        else:
            after = self.after(move)
            assert after is not None
            self.grid, self.passes = after, 0
            self.seen.add(self.grid.tobytes())
        self.sign, self.moves = -self.sign, self.moves + 1

    def fills_own_eye(self, move: int) -> bool:
        row, column = divmod(move, len(self.grid))
        for beside in ((row + 1, column), (row - 1, column), (row, column + 1), (row, column - 1)):
            if min(beside) >= 0 and max(beside) < len(self.grid) and (self.grid[beside] != self.sign or self.chain(beside)[1] == 1):
                return False
        return True

    def score(self, komi: float) -> float:
        reached = [flood(self.grid == sign, self.grid != -sign) for sign in (1, -1)]
        return float((reached[0] & ~reached[1]).sum() - (reached[1] & ~reached[0]).sum() - komi)


def plain_playout(source: random.Random) -> None:
    board = PlainBoard(9)
    while not board.is_over and board.moves < 400:
        candidates = [int(move) for move in np.flatnonzero(board.grid == 0)]
        source.shuffle(candidates)
        fitting = (move for move in candidates if not board.fills_own_eye(move) and board.after(move) is not None)
        board.play_legal(next(fitting, 81))


def plain_search(settings: Any, weights: Any, seed: int) -> int:
    """One game by the same search, each position judged alone; the simulations made."""
    generator, board, made = np.random.default_rng(seed), PlainBoard(5), 0
    while not board.is_over and board.moves < settings.move_cap:
        searching = search(board.copy(), settings, generator)
        wanted = next(searching)
        while True:
            stones = np.stack([wanted.grid == wanted.sign, wanted.grid == -wanted.sign]).reshape(1, 2, -1)
            found = forward(weights, with_constants(stones, np.array([wanted.sign == 1])))
            try:
                wanted = searching.send((np.exp(found.logits[0]), float(found.values[0])))
            except StopIteration as ended:
                board.play_legal(choose(ended.value, generator, 1.0 if board.moves < 6 else 0.0))
                break
        made += settings.simulations
    return made


def refuse_other_rules() -> None:
    """Both boards allow the same moves and count the same, or the comparison is none."""
    for seed in range(3):
        source, ours, plain = random.Random(seed), Board(5), PlainBoard(5)  # noqa: S311  # a game is no secret
        for _ in range(80):
            legal = ours.legal_points()
            assert legal == plain.legal_points()
            assert ours.score(0.5) == plain.score(0.5)
            move = source.choice(legal) if legal else 25
            ours.play(move)
            plain.play_legal(move)


def rate(act: Callable[[int], int], seconds: float) -> float:
    """What `act` makes a second; it is called with 0, 1, 2, … until the time is over."""
    made, turn, began = 0, 0, time.perf_counter()
    while (passed := time.perf_counter() - began) < seconds:
        made += act(turn)
        turn += 1
    return made / passed


def one_playout(turn: int) -> int:
    source = random.Random(turn)  # noqa: S311  # a game is no secret
    assert play_out(Board(9), lambda below: int(source.random() * below), 400)
    return 1


def one_plain_playout(turn: int) -> int:
    plain_playout(random.Random(turn))  # noqa: S311  # a game is no secret
    return 1


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 10.0
    refuse_other_rules()
    # Every legal move and the pass are searched, on both sides of the comparison.
    weights, settings = random_weights(16, [1]), Settings(simulations=SIMULATIONS, play_on=False)

    def batch(turn: int) -> int:
        match = Match(5, settings, 6)
        started = ((game(match, np.random.default_rng([turn, number])), (weights, weights)) for number in range(BATCH))
        return sum(len(played.moves) for _, played in play_all(started, BATCH)) * SIMULATIONS

    figures = (
        ("9x9 random playouts", rate(one_playout, seconds), rate(one_plain_playout, seconds)),
        ("5x5 search simulations", rate(batch, seconds), rate(lambda turn: plain_search(settings, weights, turn), seconds)),
    )
    print(f"{'a second, on one core':28} {'autogo':>10} {'plain numpy':>12} {'ratio':>8}")
    for name, ours, plain in figures:
        print(f"{name:28} {ours:10,.1f} {plain:12,.1f} {ours / plain:8.1f}")


if __name__ == "__main__":
    main()
