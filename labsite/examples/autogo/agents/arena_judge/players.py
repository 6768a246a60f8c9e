"""Who plays in an arena: networks with their search, a random mover, GNU Go."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import gnugo
import numpy as np
from game import Game
from go_board import Board
from gtp import WORDS, read_vertex, vertex_text
from gtp_peer import Peer, PeerError
from matches import Mover, play_movers, play_pair
from network import Weights
from play import Match, move_alone
from playout import random_move
from run_folder import Job, JobError


def _nothing() -> None:
    """A player without a process has nothing to end."""


@dataclass(frozen=True)
class Player:
    """`mover` makes the player of one game from its match and its own random numbers; networks play each other in batches instead. `sha256` names
    the checkpoint that plays, empty where none does."""

    name: str
    mover: Callable[[Match, np.random.Generator], Mover]
    weights: Weights | None = None
    close: Callable[[], None] = _nothing
    sha256: str = ""


def network_player(name: str, weights: Weights, sha256: str = "") -> Player:
    def mover(match: Match, random: np.random.Generator) -> Mover:
        def move(board: Board, played: Game) -> int:
            temperature = 1.0 if board.moves < match.random_moves else 0.0
            return move_alone(board, weights, match.settings, random, temperature)

        return move

    return Player(name, mover, weights, sha256=sha256)


def random_mover() -> Player:
    def mover(match: Match, random: np.random.Generator) -> Mover:
        def move(board: Board, played: Game) -> int:
            return random_move(board, lambda below: int(random.integers(below)))

        return move

    return Player("random-mover", mover)


def players_of_gnugo(job: Job, seconds: float) -> list[Player]:
    """GNU Go at the levels of the parameter `gnugo_levels`; none, with a note, where it is not installed. Raises JobError."""
    levels = job.params.get("gnugo_levels", [])
    allowed = range(gnugo.LOWEST_LEVEL, gnugo.HIGHEST_LEVEL + 1)
    if not isinstance(levels, list) or not all(
        isinstance(level, int) and not isinstance(level, bool) and level in allowed for level in levels
    ):
        raise JobError(f"parameter gnugo_levels must be a list of whole numbers from {allowed[0]} to {allowed[-1]}")
    program = gnugo.find()
    if levels and program is None:
        job.event("note", text="GNU Go is not installed in this pool; the arena goes on without its levels.")
        return []
    return [gtp_player(f"gnugo-level-{level}", gnugo.opponent(str(program), level, job.seed % 2**31, seconds=seconds)) for level in levels]


def gtp_player(name: str, peer: Peer) -> Player:
    """A player that speaks GTP. One process serves any number of games: it is told what it does not know of the game yet."""
    told: list[int] = []

    def mover(match: Match, random: np.random.Generator) -> Mover:
        def move(board: Board, played: Game) -> int:
            if not told or played.moves[: len(told)] != told:
                peer.set_up(match.size, match.settings.komi)
                told.clear()
            for number in range(len(told), len(played.moves)):
                peer.play(match.size, WORDS[number % 2], played.moves[number])
            chosen = read_move(peer, board, peer.ask(f"genmove {WORDS[board.turn]}"))
            told[:] = [*played.moves, chosen]
            return chosen

        return move

    return Player(name, mover, close=peer.close)


def read_move(peer: Peer, board: Board, said: str) -> int:
    """The move that a peer answers. Raises PeerError where it is none, or against the rules."""
    try:
        move = read_vertex(board.size, said)
    except ValueError:
        raise PeerError(f"{peer.name} wants to play {said[:20]!r}, which is no move here") from None
    if (reason := board.why_not(move)) is not None:
        raise PeerError(f"{peer.name} wants to play {vertex_text(board.size, move)}: {reason}")
    return move


def play_games(match: Match, first: Player, second: Player, games: int, seed: Sequence[int]) -> list[Game]:
    """A match: the first player has Black in the games of even number. Raises PeerError, Refused."""
    if first.weights is not None and second.weights is not None:
        return play_pair(match, first.weights, second.weights, games, seed)
    played = []
    for number in range(games):
        random = np.random.default_rng([*seed, number])
        movers = first.mover(match, random), second.mover(match, random)
        played.append(play_movers(match, *(movers if number % 2 == 0 else movers[::-1])))
    return played
