"""GNU Go, where it is installed: as a referee that replays our games, and as an opponent of a known level."""

import os
import shutil
from dataclasses import dataclass

from game import Game
from go_board import Board, members
from gtp import WORDS, read_vertex, vertex_text
from gtp_peer import Peer, PeerError, Refused
from playout import is_settled
from sgf import result_of

# Debian installs it among the games, where a service does not look.
SEARCH_PATH = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/games", "/usr/local/games"])
RULES = ("--chinese-rules", "--positional-superko", "--forbid-suicide")
SMALLEST_SCORED = 5
LOWEST_LEVEL, HIGHEST_LEVEL = 0, 10


class Disagreement(AssertionError):
    """GNU Go sees a game differently; the message says where."""


@dataclass(frozen=True)
class Verdict:
    """What GNU Go says of a finished game: its own score, Black's lead, None where it is not asked; stones that it holds for dead."""

    score: float | None
    dead: int = 0


def find() -> str | None:
    """The program's path, None where it is not installed."""
    return shutil.which("gnugo", path=SEARCH_PATH)


def referee(program: str, *, seconds: float = 20.0) -> Peer:
    """GNU Go under our rules, to ask about games."""
    return Peer([program, "--mode", "gtp", "--level", "1", *RULES], name="GNU Go", seconds=seconds)


def opponent(program: str, level: int, seed: int, *, seconds: float = 20.0) -> Peer:
    """GNU Go as a player. It plays on until what is dead is captured, since here every stone on the board counts."""
    play_on = ("--play-out-aftermath", "--capture-all-dead", "--never-resign")
    argv = [program, "--mode", "gtp", "--level", str(level), "--seed", str(seed), *RULES, *play_on]
    return Peer(argv, name=f"GNU Go, level {level}", seconds=seconds)


def check(peer: Peer, played: Game) -> Verdict:
    """Replay a game move by move in GNU Go and compare: each move legal, captures and stones equal after it, the score at the end.

    A settled board, where no sensible move is left, is scored by GNU Go itself. It takes stones off that it holds for dead, where our games
    count what is there; so the score compared is that of our rules on the board without those stones, and with none of them the game's own.
    Of any other board GNU Go's score is a forecast of how it would be played out, and below 5x5 it is at times wrong about who lives; then the
    stones are what can be compared.
    Raises Disagreement, or PeerError as Peer does.
    """
    size, board = played.size, Board(played.size)
    peer.set_up(size, played.komi)
    captures = [0, 0]
    for number, (move, captured) in enumerate(zip(played.moves, played.captured, strict=True), start=1):
        colour = board.turn
        try:
            peer.play(size, WORDS[colour], move)
        except Refused as exc:
            raise Disagreement(f"move {number}, {WORDS[colour]} {vertex_text(size, move)}, is refused: {exc}") from exc
        if board.play(move).bit_count() != captured:
            raise Disagreement(f"move {number}: the record says {captured} captured, the board another number")
        captures[colour] += captured
        _compare(peer, board, captures, number)
    if board.score(played.komi) != played.score:
        raise Disagreement(f"the record says {result_of(played.score)}, the board {result_of(board.score(played.komi))}")
    return _verdict(peer, board, played) if size >= SMALLEST_SCORED and is_settled(board) else Verdict(None)


def _compare(peer: Peer, board: Board, captures: list[int], number: int) -> None:
    for colour, word in enumerate(WORDS):
        theirs = _points(peer, board.size, f"list_stones {word}")
        if theirs != board.stones[colour]:
            differing = [vertex_text(board.size, point) for point in members(theirs ^ board.stones[colour])]
            raise Disagreement(f"after move {number} {word} differs at {' '.join(differing)}")
        if (taken := peer.ask(f"captures {word}")) != str(captures[colour]):
            raise Disagreement(f"after move {number} {word} has captured {captures[colour]}, by GNU Go {taken[:20]}")


def _verdict(peer: Peer, board: Board, played: Game) -> Verdict:
    dead = _points(peer, played.size, "final_status_list dead")
    said = peer.ask("final_score")
    try:
        score = 0.0 if said == "0" else float(said[2:]) * {"B+": 1, "W+": -1}[said[:2]]
    except (ValueError, KeyError):
        raise PeerError(f"GNU Go gives the score as {said[:40]!r}") from None
    cleared = board.copy()
    cleared.stones = [stones & ~dead for stones in board.stones]
    if abs(cleared.score(played.komi) - score) > 0.05:  # GNU Go writes one decimal
        raise Disagreement(f"the score is {result_of(cleared.score(played.komi))}, by GNU Go {said[:40]}")
    return Verdict(score, dead.bit_count())


def _points(peer: Peer, size: int, question: str) -> int:
    """The points that GNU Go names, as a set. Raises PeerError where one is no vertex."""
    found = 0
    for word in peer.ask(question).split():
        try:
            found |= 1 << read_vertex(size, word)
        except ValueError as exc:
            raise PeerError(f"GNU Go answers {question!r} with {word[:20]!r}, which is no vertex") from exc
    return found & ((1 << size * size) - 1)
