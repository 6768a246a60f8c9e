"""The engine's side of GTP: a player that speaks it on standard input and output, started by gtp_player.py.

Besides the commands that the protocol requires: `undo`, `final_score`, `showboard`, `list_stones`. As the protocol has it, either colour may
play at any time; the rules are those of go_board, so suicide and repeated positions are illegal moves.
"""

import math
import re
from collections.abc import Callable
from typing import TextIO

from go_board import LARGEST, SMALLEST, Board, IllegalMove, members
from gtp import COLUMNS, Command, parse, read_colour, read_vertex, vertex_text
from sgf import result_of

NAME, VERSION = "autogo", "1"
MAX_LINE = 4096
Chooser = Callable[[Board, float], int]
"""Picks a move for the side to move of a board that is not over, given the komi."""


class Failure(Exception):
    """The command fails; the message is the protocol's word for it, or ours."""


class Engine:
    """One game at a time and the commands on it. `choose` is asked for moves; it must not change the board that it is given."""

    def __init__(self, choose: Chooser, size: int = 9) -> None:
        self._choose = choose
        self._komi = 0.0
        self._size = size
        self._boards = [Board(size)]
        self._commands: dict[str, Callable[..., str]] = {
            "protocol_version": lambda: "2",
            "name": lambda: NAME,
            "version": lambda: VERSION,
            "known_command": lambda name: "true" if name in self._commands else "false",
            "list_commands": lambda: "\n".join(sorted(self._commands)),
            "quit": lambda: "",
            "boardsize": self._boardsize,
            "clear_board": self._clear,
            "komi": self._set_komi,
            "play": self._play,
            "genmove": self._genmove,
            "undo": self._undo,
            "final_score": lambda: result_of(self._board.score(self._komi)),
            "showboard": self._show,
            "list_stones": self._stones,
        }

    def serve(self, lines: TextIO, answers: TextIO) -> None:
        """Answer commands until `quit` or the end of input."""
        while line := lines.readline(MAX_LINE):
            if len(line) >= MAX_LINE and not line.endswith("\n"):
                while (rest := lines.readline(MAX_LINE)) and not rest.endswith("\n"):
                    pass
                line = "too_long"
            command = parse(line)
            if command is None:
                continue
            try:
                mark, text = "=", self.answer(command)
            except Failure as failure:
                mark, text = "?", str(failure)
            answers.write(f"{mark}{command.number}{' ' if text else ''}{text}\n\n")
            answers.flush()
            if command.name == "quit" and mark == "=":
                return

    def answer(self, command: Command) -> str:
        """Carry out a command. Raises Failure."""
        act = self._commands.get(command.name)
        if act is None:
            raise Failure("unknown command")
        wanted = {"known_command": 1, "boardsize": 1, "komi": 1, "play": 2, "genmove": 1, "list_stones": 1}.get(command.name, 0)
        if len(command.arguments) < wanted:  # more than wanted are ignored, as most engines do
            raise Failure("syntax error")
        try:
            return act(*command.arguments[:wanted])
        except ValueError as exc:  # a vertex, a colour or a number that is none
            raise Failure("illegal move" if isinstance(exc, IllegalMove) else "syntax error") from exc

    @property
    def _board(self) -> Board:
        return self._boards[-1]

    def _boardsize(self, text: str) -> str:
        size = int(text)
        if not SMALLEST <= size <= LARGEST:
            raise Failure("unacceptable size")
        self._size = size
        return self._clear()

    def _clear(self) -> str:
        self._boards = [Board(self._size)]
        return ""

    def _set_komi(self, text: str) -> str:
        komi = float(text)
        if not math.isfinite(komi):
            raise ValueError("komi is a number")
        self._komi = komi
        return ""

    def _play(self, colour: str, vertex: str) -> str:
        board = self._as(colour)
        try:
            move = read_vertex(self._size, vertex)
        except ValueError as exc:
            # GTP has one word for a vertex that is none on this board and a move against the rules; letters that are no vertex are syntax.
            raise (IllegalMove(str(exc)) if re.fullmatch(r"[A-Za-z][0-9]{1,4}", vertex) else exc) from exc
        board.play(move)
        self._boards.append(board)
        return ""

    def _genmove(self, colour: str) -> str:
        board = self._as(colour)
        # After two passes a controller may go on asking, where it disputes what is dead; then there is nothing left to say but pass.
        move = board.geometry.pass_move if board.is_over else self._choose(board.copy(), self._komi)
        board.play(move)
        self._boards.append(board)
        return vertex_text(self._size, move).upper() if move != board.geometry.pass_move else "pass"

    def _undo(self) -> str:
        if len(self._boards) == 1:
            raise Failure("cannot undo")
        self._boards.pop()
        return ""

    def _as(self, colour: str) -> Board:
        board = self._board.copy()
        board.turn = read_colour(colour)
        return board

    def _show(self) -> str:
        rows = []
        for row in reversed(range(self._size)):
            stones = " ".join(
                "XO."[2 if (stone := self._board.at(row * self._size + column)) is None else stone] for column in range(self._size)
            )
            rows.append(f"{row + 1} {stones}")
        return "\n" + "\n".join([*rows, "  " + " ".join(COLUMNS[: self._size])])

    def _stones(self, colour: str) -> str:
        return " ".join(vertex_text(self._size, point) for point in members(self._board.stones[read_colour(colour)]))
