"""Games between players, many at a time: each game is a generator, and positions that wait for the same network are judged in one batch."""

from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from game import Game
from go_board import BLACK, WHITE, Board
from network import Weights, as_rows, evaluate
from search import Judged, Settings, choose, search

BATCH = 32


@dataclass(frozen=True)
class Match:
    """What a game is played under. Colours choose with temperature 1 for their first `random_moves` moves together, then the most visited."""

    size: int
    settings: Settings
    random_moves: int


Asking = Generator[tuple[int, Board], Judged, Game]
"""A game under way: asks for the judgement of a board by the network of a colour."""


def game(match: Match, random: np.random.Generator) -> Asking:
    """One game by the same search on both sides."""
    board, played, settings = Board(match.size), Game(match.size, match.settings.komi), match.settings
    while not board.is_over and board.moves < settings.move_cap:
        turn, searching = board.turn, search(board.copy(), settings, random)
        wanted = next(searching)
        while True:
            judged = yield turn, wanted
            try:
                wanted = searching.send(judged)
            except StopIteration as ended:
                root = ended.value
                break
        shares = np.zeros(board.geometry.pass_move + 1, np.float32)
        shares[root.moves] = np.array(root.visits, np.float32) / sum(root.visits)
        played.visits.append(shares)
        played.play(board, choose(root, random, 1.0 if board.moves < match.random_moves else 0.0))
    played.end(board)
    return played


def play_all(games: Iterable[tuple[Asking, Sequence[Weights]]], batch: int = BATCH) -> Iterator[tuple[int, Game]]:
    """Play games, each with the networks of Black and White, `batch` at a time; (number, game) as they end.

    Which positions share a batch follows from the games alone, so the same games are the same bit for bit.
    """
    waiting = enumerate(games)
    running: list[tuple[int, Asking, Sequence[Weights], int, Board]] = []
    while True:
        while len(running) < batch and (fresh := next(waiting, None)) is not None:
            number, (asking, networks) = fresh
            running.append((number, asking, networks, *next(asking)))
        if not running:
            return
        judged = _judge([(networks[turn], board) for _, _, networks, turn, board in running])
        still, ended = [], []
        for (number, asking, networks, _, _), answer in zip(running, judged, strict=True):
            try:
                still.append((number, asking, networks, *asking.send(answer)))
            except StopIteration as stop:
                ended.append((number, stop.value))
        running = still
        yield from ended


def move_alone(board: Board, weights: Weights, settings: Settings, random: np.random.Generator, temperature: float = 0.0) -> int:
    """The move of one player in one position, for a game whose other side is no network."""
    searching = search(board, settings, random)
    wanted = next(searching)
    while True:
        priors, values = evaluate(weights, [wanted])
        try:
            wanted = searching.send((priors[0], float(values[0])))
        except StopIteration as ended:
            return choose(ended.value, random, temperature)


def _judge(asked: Sequence[tuple[Weights, Board]]) -> list[Judged]:
    """Judgements in the order of the questions, one batch for each network."""
    answers: list[Judged] = [(np.empty(0), 0.0)] * len(asked)
    for network in dict.fromkeys(weights for weights, _ in asked):
        places = [place for place, (weights, _) in enumerate(asked) if weights is network]
        priors, values = evaluate(network, [asked[place][1] for place in places])
        for place, row, value in zip(places, priors, values.tolist(), strict=True):
            answers[place] = (row, value)
    return answers


def owners(played: Game) -> np.ndarray:
    """By point: 1 where Black owns it at the end, -1 where White does, 0 where nobody does."""
    board = Board(played.size)
    for move in played.moves:
        board.play(move)
    owned = as_rows([board.area(BLACK), board.area(WHITE)], played.size**2).astype(np.int8)
    return owned[0] - owned[1]
