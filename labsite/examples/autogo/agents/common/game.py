"""The record of a game that has ended."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from go_board import Board


@dataclass
class Game:
    """`captured` counts the stones that each move took; `score` is Black's lead. `visits` are arrays, the shares of the search's visits at each
    move over all points and the pass, where a search played. `capped`: it was not over when it was scored."""

    size: int
    komi: float
    moves: list[int] = field(default_factory=list)
    captured: list[int] = field(default_factory=list)
    score: float = 0.0
    capped: bool = False
    visits: list[Any] = field(default_factory=list)

    @property
    def black_points(self) -> float:
        """1 for Black's win, 0 for White's, a half for a draw."""
        return 0.5 if self.score == 0 else float(self.score > 0)

    def play(self, board: Board, move: int) -> None:
        """Play a move of this game on its board, and note it."""
        self.captured.append(board.play(move).bit_count())
        self.moves.append(move)

    def end(self, board: Board) -> None:
        """Score the board as it stands."""
        self.score, self.capped = board.score(self.komi), not board.is_over

    def replay(self) -> Iterator[Board]:
        """The board before each move; the same board, which goes on."""
        board = Board(self.size)
        for move in self.moves:
            yield board
            board.play(move)
