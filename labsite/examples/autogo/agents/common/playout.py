"""Moves that do not fill an eye of one's own, and the player without any skill that draws among them."""

from collections.abc import Callable

from go_board import BLACK, WHITE, Board, members

Below = Callable[[int], int]
"""A whole number from 0 to less than its argument, each as likely as the others (`random.Random.randrange`)."""


def fills_own_eye(board: Board, point: int) -> bool:
    """Whether all neighbours of an empty point are stones of the side to move, none of them in atari."""
    beside = board.geometry.adjacent_mask[point]
    if beside & ~board.stones[board.turn]:
        return False
    return all(board.liberties(neighbour) != 1 << point for neighbour in board.geometry.adjacent[point])


def sensible_points(board: Board) -> list[int]:
    """The legal points, lowest first, without those that fill an own eye."""
    return [point for point in board.legal_points() if not fills_own_eye(board, point)]


def is_settled(board: Board) -> bool:
    """Whether neither side has a sensible point left, whoever is to move and whatever came before: what is on the board stays there."""
    return not any(sensible_points(board.restarted(turn)) for turn in (BLACK, WHITE))


def random_move(board: Board, below: Below) -> int:
    """A move drawn as the module says; a pass where there is none."""
    candidates = members(board.geometry.full & ~(board.stones[0] | board.stones[1]))
    while candidates:
        place = below(len(candidates))
        point = candidates[place]
        candidates[place] = candidates[-1]
        candidates.pop()
        if not fills_own_eye(board, point) and board.is_legal(point):
            return point
    return board.geometry.pass_move


def play_out(board: Board, below: Below, move_cap: int) -> bool:
    """Play on to the end; False where the game had not ended after `move_cap` moves in all."""
    while not board.is_over and board.moves < move_cap:
        board.play_legal(random_move(board, below))
    return board.is_over
