"""Tree search with a learned prior and value: PUCT as in Silver et al., "Mastering the game of Go without human knowledge" (2017).

A search is a generator: it yields each board that it wants judged and is sent the priors and the value, so that many games wait for one
batch. Values are of the side to move, 1 a sure win, -1 a sure loss; a finished game is judged by its score, not by the network.
"""

import math
from collections.abc import Generator
from dataclasses import dataclass

import numpy as np
from go_board import BLACK, Board
from playout import sensible_points

Judged = tuple[np.ndarray, float]
"""Priors of all moves, the pass last, of any positive sum and not narrowed to what may be played; the value."""


@dataclass(frozen=True)
class Settings:
    """`move_cap` ends a game by the rules of the match: it is scored as it stands. `noise` 0 is a search without exploration at its root.

    `play_on`: a player passes only where every other move would fill an own eye, so that games end when all that is dead is captured, and
    counting the stones on the board is what any referee would count. Without it a pass is a move like others.
    """

    simulations: int = 32
    exploration: float = 1.5
    noise: float = 0.0
    noise_alpha: float = 0.3
    komi: float = 0.5
    move_cap: int = 150
    play_on: bool = True


class Node:
    """A position of the tree. Lists run over the moves that are searched, a pass last; `sums` are values for the side to move here."""

    __slots__ = ("board", "children", "moves", "outcome", "priors", "sums", "value", "visits")

    def __init__(self, board: Board, outcome: float | None) -> None:
        self.board = board
        self.outcome = outcome  # of a finished game
        self.moves: list[int] = []
        self.priors: list[float] = []
        self.children: list[Node | None] = []
        self.visits: list[int] = []
        self.sums: list[float] = []
        self.value = 0.0


def outcome(board: Board, settings: Settings) -> float | None:
    """1 where the side to move has won, -1 where it has lost, 0 for a draw, None where the game goes on."""
    if not board.is_over and board.moves < settings.move_cap:
        return None
    score = board.score(settings.komi)
    return float(np.sign(score if board.turn == BLACK else -score))


def search(board: Board, settings: Settings, random: np.random.Generator) -> Generator[Board, Judged, Node]:
    """The root after `simulations` simulations. The game must not be over."""
    root = Node(board, None)
    yield from _expand(root, settings)
    if settings.noise:
        drawn = random.dirichlet([settings.noise_alpha] * len(root.moves)).tolist()
        root.priors = [(1 - settings.noise) * prior + settings.noise * extra for prior, extra in zip(root.priors, drawn, strict=True)]
    for _ in range(settings.simulations):
        node, path = root, []
        while node.outcome is None:
            index = _best(node, settings.exploration)
            path.append((node, index))
            child = node.children[index]
            if child is None:
                child = node.children[index] = _child(node, index, settings)
                if child.outcome is None:
                    yield from _expand(child, settings)
                node = child
                break
            node = child
        value = node.value if node.outcome is None else node.outcome
        for parent, index in reversed(path):
            value = -value
            parent.visits[index] += 1
            parent.sums[index] += value
    return root


def choose(root: Node, random: np.random.Generator, temperature: float) -> int:
    """A move by its share of visits, sharpened by `temperature`; 0 takes the most visited, the first of equals."""
    if temperature <= 0:
        return root.moves[root.visits.index(max(root.visits))]
    weights = np.array(root.visits, float) ** (1 / temperature)
    reached = np.cumsum(weights / weights.sum())
    return root.moves[min(int(np.searchsorted(reached, random.random(), side="right")), len(root.moves) - 1)]


def _child(node: Node, index: int, settings: Settings) -> Node:
    board = node.board.copy()
    board.play_legal(node.moves[index])
    return Node(board, outcome(board, settings))


def _expand(node: Node, settings: Settings) -> Generator[Board, Judged, None]:
    """Ask for the judgement of a position and hang its moves below it."""
    priors, node.value = yield node.board
    node.moves = sensible_points(node.board) if settings.play_on else node.board.legal_points()
    if not node.moves or not settings.play_on:
        node.moves.append(node.board.geometry.pass_move)
    weights = priors[node.moves].tolist()
    total = math.fsum(weights)
    node.priors = [weight / total for weight in weights] if total > 0 else [1 / len(weights)] * len(weights)
    node.children, node.visits, node.sums = [None] * len(weights), [0] * len(weights), [0.0] * len(weights)


def _best(node: Node, exploration: float) -> int:
    """The move of the highest upper bound; one that was never tried counts with the value of the position itself."""
    scale = exploration * math.sqrt(sum(node.visits) + 1)
    value, best, highest = node.value, 0, -math.inf
    for index, (visits, total, prior) in enumerate(zip(node.visits, node.sums, node.priors, strict=True)):
        bound = (total / visits if visits else value) + scale * prior / (1 + visits)
        if bound > highest:
            best, highest = index, bound
    return best
